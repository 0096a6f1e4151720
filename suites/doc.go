// Package suites is Ginkgo glue: specs whose body runs in a bubble of virtual time with a simulated network.
//
//	func TestSuite(t *testing.T) { suites.RunSpecs(t, "my client") }
//
//	var _ = suites.It("leaves a silent proxy", func(t *testing.T, n *netsim.Network) {
//		app, proxy := n.Host("app"), n.Host("proxy")
//		n.Link(app, proxy).Cut()
//		gomega.Expect(client(app.DialContext)).To(gomega.Succeed())
//	}, ginkgo.Label("proxy"))
//
// A failed expectation, in the body or in any goroutine of the bubble, is a failure of the spec at its own line, and ends
// that goroutine alone. t.Cleanup runs inside the bubble; ginkgo.DeferCleanup would run outside. Leaked goroutines are
// named. What is made in BeforeEach is outside the bubble: a channel from there stops virtual time, and the report says so.
package suites
