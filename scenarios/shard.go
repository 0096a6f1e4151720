package scenarios

import (
	"fmt"
	"os"
	"strconv"
)

// A Shard is one of Total equal parts of a sweep, counted from 0. The zero value is the whole.
type Shard struct{ Index, Total int }

func (s Shard) validate() error {
	if s == (Shard{}) || (s.Total > 0 && s.Index >= 0 && s.Index < s.Total) {
		return nil
	}
	return fmt.Errorf("scenarios: there is no shard %d of %d", s.Index, s.Total)
}

func (s Shard) has(i int) bool { return s.Total == 0 || i%s.Total == s.Index }

// ShardFromEnv is the shard that the environment names, the whole if it names none. TEST_TOTAL_SHARDS and
// TEST_SHARD_INDEX are Bazel's; as Bazel wants, the file TEST_SHARD_STATUS_FILE is touched to say that they are honoured.
// JOB_COMPLETION_INDEX is that of a Kubernetes Indexed Job, which does not tell its total: that is the argument.
func ShardFromEnv(jobTotal int) (Shard, error) {
	var s Shard
	var err error
	if os.Getenv("TEST_TOTAL_SHARDS") != "" {
		if s.Total, err = number("TEST_TOTAL_SHARDS"); err != nil {
			return Shard{}, err
		}
		if s.Index, err = number("TEST_SHARD_INDEX"); err != nil {
			return Shard{}, err
		}
		if name := os.Getenv("TEST_SHARD_STATUS_FILE"); name != "" {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				return Shard{}, fmt.Errorf("scenarios: TEST_SHARD_STATUS_FILE: %w", err)
			}
			f.Close()
		}
		return checked(s)
	}
	if os.Getenv("JOB_COMPLETION_INDEX") == "" {
		return s, nil
	}
	s.Total = jobTotal
	if s.Index, err = number("JOB_COMPLETION_INDEX"); err != nil {
		return Shard{}, err
	}
	return checked(s)
}

func checked(s Shard) (Shard, error) {
	if s.Total < 1 {
		return Shard{}, fmt.Errorf("scenarios: shard %d of %d: the total must be 1 at least", s.Index, s.Total)
	}
	return s, s.validate()
}

func number(variable string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		return 0, fmt.Errorf("scenarios: %s=%q is not a number: %w", variable, os.Getenv(variable), err)
	}
	return n, nil
}
