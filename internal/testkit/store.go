package testkit

import (
	"context"
	"sync"
)

// MemoryStore is an agent.Options.Store that keeps the record of an agent in memory. The zero value has no record.
type MemoryStore struct {
	mu     sync.Mutex
	record []byte
}

// Load returns the record, or nil if there is none.
func (s *MemoryStore) Load(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record, nil
}

// Save replaces the record.
func (s *MemoryStore) Save(_ context.Context, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = record
	return nil
}

// Delete removes the record.
func (s *MemoryStore) Delete(ctx context.Context) error { return s.Save(ctx, nil) }
