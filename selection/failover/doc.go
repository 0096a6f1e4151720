// Package failover forwards HTTP requests to several upstream providers with
// several endpoints each, and goes on to the next endpoint or provider by the kind
// of error, before the client has seen anything of it.
//
//	transport, err := failover.New(failover.Config{
//		Providers: []failover.Provider{
//			{Provider: retry.Provider{Name: "a", URL: "https://a.example", Endpoints: []retry.Endpoint{
//				{ID: "a1", URL: "https://a1.example"}, {ID: "a2", URL: "https://a2.example"}}}},
//			{Provider: retry.Provider{Name: "b", URL: "https://b.example"}},
//		},
//		Logger: slog.Default(),
//	})
//	http.ListenAndServe(":8080", failover.NewHandler(transport, nil))
//
// A [Transport] is an http.RoundTripper for a program of one's own; [NewHandler]
// makes a reverse proxy of it. What follows from which error is decided by package
// retry; this package makes the calls, keeps the timers and moves the bytes.
//
// # What the client sees
//
// Nothing before the first content of an answer: the first byte of a body, or the
// first event of a text/event-stream that is neither an error nor a mere sign of
// life. Until then an attempt can fail without a trace. From then on there is no
// other attempt; if the stream breaks, the client sees it break. Informational
// answers (1xx) of the providers are not passed on.
//
// If all providers fail the client gets 503 without a word about them. 499 stands
// for a client that left; 413 for a body over the limit.
//
// # Request bodies
//
// A body is read into memory before the first attempt, so that every attempt gets
// it byte for byte, up to Config.MaxBody (32 MiB by default). A larger one is
// refused with 413 rather than sent without a second chance. A request that
// brings its own GetBody is not buffered.
//
// # Limits
//
// Upgrades (WebSocket) and CONNECT are answered with 501: there is no replaying
// them. An h2c upgrade offer is ignored, as HTTP allows. A compressed event stream
// cannot be looked into: its first byte counts as content.
package failover
