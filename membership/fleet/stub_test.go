package fleet

import "context"

// stub is a Runner that returns immediately.
type stub string

func (s stub) Name() string { return string(s) }

func (stub) Run(context.Context, Connected) error { return nil }
