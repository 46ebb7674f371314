// Package plugins contains the plugins of muster, one package each, and their default profile:
//
//	s, err := scheduler.New(scheduler.Options{
//		Registry: plugins.Registry(),
//		Profiles: []scheduler.Profile{plugins.DefaultProfile()},
//	})
//
// This package links all plugins, including the CEL evaluator. To use only some of them, import their packages
// directly.
package plugins
