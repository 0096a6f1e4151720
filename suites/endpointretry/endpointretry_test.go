// Package endpointretry has the specs of the endpoint-retry stories. Pick them by id, by their words, or by label:
//
//	go test ./suites/endpointretry -ginkgo.focus 'ER-10'
//	go test ./suites/endpointretry -ginkgo.focus 'last endpoint is repeated'
//	go test ./suites/endpointretry -ginkgo.label-filter 'endpoint-retry && stream'
package endpointretry

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/endpointretry"
	"github.com/seed-5a7f77c4/deadair/suites"
)

var suite *testing.T

func TestEndpointRetry(t *testing.T) {
	suite = t
	suites.RunSpecs(t, "endpoint retry")
}

// mutant finds a mutant by its name.
func mutant(name string) scenarios.Mutant[endpointretry.Subject] {
	all := endpointretry.Mutants()
	return all[slices.IndexFunc(all, func(m scenarios.Mutant[endpointretry.Subject]) bool { return m.Name == name })]
}

var _ = ginkgo.Describe("endpoint retry", func() {
	suites.Specs(endpointretry.Stories(), endpointretry.Ours)

	old := mutant("old")
	fixed := slices.DeleteFunc(endpointretry.Stories(), func(s scenarios.Scenario[endpointretry.Subject]) bool {
		return !slices.Contains(old.Kills, s.ID)
	})
	suites.OldSpecs(fixed, func() endpointretry.Subject { return old.Apply(endpointretry.Ours()) })
})

var _ = ginkgo.Describe("mutants of the endpoint retry", ginkgo.Label("endpoint-retry", "mutants"), func() {
	ginkgo.It("are killed by the stories they name, and by no other", func() {
		matrix, err := scenarios.Matrix(suite, endpointretry.Stories(), endpointretry.Ours(), endpointretry.Mutants(), 1, nil)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var table strings.Builder
		matrix.WriteTo(&table)
		ginkgo.AddReportEntry("matrix", table.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
		gomega.Expect(matrix.Check()).To(gomega.Succeed())
	})

	ginkgo.It("touch every story", func() {
		killers := map[string]bool{}
		for _, m := range endpointretry.Mutants() {
			for _, id := range m.Kills {
				killers[id] = true
			}
		}
		for _, s := range endpointretry.Stories() {
			gomega.Expect(killers).To(gomega.HaveKey(s.ID))
		}
	})
})
