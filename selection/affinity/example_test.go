package affinity_test

import (
	"fmt"
	"time"

	"github.com/seed-5a7f77c4/deadair/selection/affinity"
)

func Example() {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	table := affinity.New(affinity.DefaultTTL, affinity.DefaultCapacity)
	table.Bind("conversation 7", "provider B", now)
	fmt.Println(table.Lookup("conversation 7", now.Add(299*time.Second)))
	fmt.Println(table.Lookup("conversation 7", now.Add(300*time.Second)))
	// Output:
	// provider B true
	//  false
}
