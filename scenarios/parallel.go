package scenarios

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls work(0) … work(n-1) on as many goroutines as there are processors, and writes a line to progress
// at every tenth of the way. A nil progress says nothing.
func parallel(n int, name string, progress io.Writer, work func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	var said sync.Mutex
	done := 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(i)
				said.Lock()
				done++
				if progress != nil && done*10/n != (done-1)*10/n {
					fmt.Fprintf(progress, "%s: %d of %d runs\n", name, done, n)
				}
				said.Unlock()
			}
		})
	}
	workers.Wait()
}
