package apiserver

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// ids generates UIDs, generated names and other random values. They depend only on the seed and on the order of the
// calls.
type ids struct {
	mu     sync.Mutex
	source *rand.Rand
}

// random returns a random number.
func (s *ids) random() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

// uid returns a random UID.
func (s *ids) uid() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id [16]byte
	for i := range 2 {
		n := s.source.Uint64()
		for j := range 8 {
			id[8*i+j] = byte(n >> (8 * j))
		}
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// suffix returns a random suffix for generateName, in the alphabet of Kubernetes.
func (s *ids) suffix() string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]byte, 5)
	for i := range out {
		out[i] = alphabet[s.source.IntN(len(alphabet))]
	}
	return string(out)
}
