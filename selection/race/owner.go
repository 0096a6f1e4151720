package race

// Generation numbers the attempts to connect.
type Generation uint64

// Owner says which attempt owns the connection: always the newest. Its zero value is ready to use.
type Owner struct{ current Generation }

// Begin starts a new attempt, which supersedes every older one.
func (o *Owner) Begin() Generation {
	o.current++
	return o.current
}

// Holds reports whether the attempt has not been superseded.
func (o *Owner) Holds(g Generation) bool { return g == o.current }
