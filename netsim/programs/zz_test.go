package programs

import (
	"os"
	"runtime/pprof"
	"time"
)

func init() {
	if os.Getenv("ZZ") != "" {
		f, _ := os.Create("/tmp/cpu.out")
		pprof.StartCPUProfile(f)
		go func() {
			time.Sleep(6 * time.Second)
			pprof.StopCPUProfile()
			f.Close()
			os.Exit(3)
		}()
	}
}
