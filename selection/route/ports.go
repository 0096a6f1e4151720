package route

// The machine listens on DefaultPort, or, when that was taken, on one of the next ones up to LastPort. A first port
// between DefaultPort and lastSwept belongs to that family and is followed by the sweep; any other port was chosen on
// purpose and stands alone.
const (
	DefaultPort uint16 = 8787
	LastPort    uint16 = 8795
	lastSwept   uint16 = 8999
)

// Ports lists the ports to try on a direct route: first (0 means DefaultPort), then the sweep if first is of its family.
func Ports(first uint16) []uint16 {
	if first == 0 {
		first = DefaultPort
	}
	ports := []uint16{first}
	if first < DefaultPort || first > lastSwept {
		return ports
	}
	for p := DefaultPort; p <= LastPort; p++ {
		if p != first {
			ports = append(ports, p)
		}
	}
	return ports
}
