// Command production prints docs/production.md, the catalogue of package
// conditions as a table.
package main

import (
	"fmt"

	"github.com/seed-5a7f77c4/deadair/scenarios/conditions"
)

func main() { fmt.Print(conditions.Markdown()) }
