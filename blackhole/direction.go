package blackhole

import "fmt"

// Direction says which bytes of a connection are meant. The zero Direction means none and is refused.
type Direction uint8

const (
	// Up is from the side that dialled to the side that accepted.
	Up Direction = 1 << iota
	// Down is from the side that accepted to the side that dialled.
	Down
	// Both is Up and Down.
	Both = Up | Down
)

// String is "up", "down" or "both".
func (d Direction) String() string {
	switch d {
	case Up:
		return "up"
	case Down:
		return "down"
	case Both:
		return "both"
	}
	return fmt.Sprintf("Direction(%d)", uint8(d))
}

// ParseDirection is the inverse of String.
func ParseDirection(s string) (Direction, error) {
	for _, d := range []Direction{Up, Down, Both} {
		if d.String() == s {
			return d, nil
		}
	}
	return 0, fmt.Errorf("blackhole: direction %q: want up, down or both", s)
}

func (d Direction) has(e Direction) bool { return d&e != 0 }

func (d Direction) valid() bool { return d != 0 && d&^Both == 0 }

// lane is the index of a single direction in an array of two.
func (d Direction) lane() int {
	if d == Down {
		return 1
	}
	return 0
}
