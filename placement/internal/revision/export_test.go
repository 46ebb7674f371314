package revision

// SetLimit has the store make parts of so many bytes, so that tests of several parts need no megabytes.
func (s *Store) SetLimit(bytes int) { s.limit = bytes }
