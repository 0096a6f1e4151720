// Package transportrace has the specs of the transport-race stories. Pick them by id, by their words, or by label:
//
//	go test ./suites/transportrace -ginkgo.focus 'TR-8'
//	go test ./suites/transportrace -ginkgo.focus 'Wi-Fi comes back'
//	go test ./suites/transportrace -ginkgo.label-filter 'transport-race'
package transportrace

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"github.com/seed-5a7f77c4/deadair/scenarios"
	"github.com/seed-5a7f77c4/deadair/scenarios/transportrace"
	"github.com/seed-5a7f77c4/deadair/suites"
)

var suite *testing.T

func TestTransportRace(t *testing.T) {
	suite = t
	suites.RunSpecs(t, "transport race")
}

var _ = ginkgo.Describe("transport race", func() {
	suites.Specs(transportrace.Stories(), transportrace.Ours)

	old := transportrace.Mutants()[0]
	fixed := slices.DeleteFunc(transportrace.Stories(), func(s scenarios.Scenario[transportrace.Subject]) bool {
		return !slices.Contains(old.Kills, s.ID)
	})
	suites.OldSpecs(fixed, func() transportrace.Subject { return old.Apply(transportrace.Ours()) })
})

var _ = ginkgo.Describe("mutants of the transport race", ginkgo.Label("transport-race", "mutants"), func() {
	ginkgo.It("are killed by the stories they name, and by no other", func() {
		matrix, err := scenarios.Matrix(suite, transportrace.Stories(), transportrace.Ours(), transportrace.Mutants(), 1, nil)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		var table strings.Builder
		matrix.WriteTo(&table)
		ginkgo.AddReportEntry("matrix", table.String(), ginkgo.ReportEntryVisibilityFailureOrVerbose)
		gomega.Expect(matrix.Check()).To(gomega.Succeed())
	})
})
