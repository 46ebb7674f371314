package testkit

import (
	"context"
	"sync"
)

// MemoryStore is what survives an agent, as agent.Options.Store. The zero value is that of an agent that has never run.
type MemoryStore struct {
	mu     sync.Mutex
	record []byte
}

// Load returns what was saved; nil: nothing.
func (s *MemoryStore) Load(context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record, nil
}

// Save keeps a record instead of the one before.
func (s *MemoryStore) Save(_ context.Context, record []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record = record
	return nil
}

// Delete forgets the record.
func (s *MemoryStore) Delete(ctx context.Context) error { return s.Save(ctx, nil) }
