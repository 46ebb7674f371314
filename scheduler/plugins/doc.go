// Package plugins has the plugins that come with muster, one folder each, and the profile that is made of them:
//
//	s, err := scheduler.New(scheduler.Options{
//		Registry: plugins.Registry(),
//		Profiles: []scheduler.Profile{plugins.DefaultProfile()},
//	})
//
// A product that wants fewer takes their packages alone; this one links all of them, and with them the evaluator of
// CEL.
package plugins
