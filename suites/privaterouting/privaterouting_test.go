// Package privaterouting has the specs of the private-routing stories. Pick them by id, by their words, or by label:
//
//	ginkgo --focus 'PR-4' ./suites/privaterouting
//	ginkgo --focus 'P1 broken' ./suites/...
//	ginkgo --label-filter 'private-routing && field' ./suites/...
package privaterouting

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/privaterouting"
	"github.com/seed-5a7f77c4/deadair/suites"
)

var suite *testing.T

func TestPrivateRouting(t *testing.T) {
	suite = t
	suites.RunSpecs(t, "private routing")
}

// old is the agent before the change.
func old() scenarios.Mutant[privaterouting.Subject] {
	all := privaterouting.Mutants()
	return all[slices.IndexFunc(all, func(m scenarios.Mutant[privaterouting.Subject]) bool { return m.Name == "old" })]
}

var _ = ginkgo.Describe("private routing", func() {
	suites.Specs(privaterouting.Stories(), privaterouting.Ours)

	changed := slices.DeleteFunc(privaterouting.Stories(), func(s scenarios.Scenario[privaterouting.Subject]) bool {
		return !slices.Contains(old().Kills, s.ID)
	})
	suites.OldSpecs(changed, func() privaterouting.Subject { return old().Apply(privaterouting.Ours()) })
})

var _ = ginkgo.Describe("mutants of private routing", ginkgo.Label("private-routing", "mutants"), func() {
	ginkgo.It("are killed by the stories they name, and by no other", func() {
		matrix, err := scenarios.Matrix(suite, privaterouting.Stories(), privaterouting.Ours(), privaterouting.Mutants(), 1, nil)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var table strings.Builder
		matrix.WriteTo(&table)
		ginkgo.AddReportEntry("matrix", table.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
		gomega.Expect(matrix.Check()).To(gomega.Succeed())
	})
})
