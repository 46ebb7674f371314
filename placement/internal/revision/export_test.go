package revision

// SetLimit sets the maximum number of bytes of a part, so that tests of several parts need no megabytes.
func (s *Store) SetLimit(bytes int) { s.limit = bytes }
