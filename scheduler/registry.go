package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/yaml"
)

// Args are the arguments of a plugin in a profile, in JSON; empty: none were given, which has to do or is an error.
type Args = json.RawMessage

// DecodeArgs puts arguments into a struct with json tags, which keeps what it has where they say nothing. The error
// names a field that does not exist or has the wrong type.
func DecodeArgs(args Args, into any) error {
	if len(args) == 0 {
		return nil
	}
	if err := yaml.UnmarshalStrict(args, into); err != nil {
		// What is wrong comes first, and not how it was found out.
		text := err.Error()
		if i := strings.LastIndex(text, "json: "); i >= 0 {
			text = text[i+len("json: "):]
		}
		return errors.New(text)
	}
	return nil
}

// Handle is what a plugin is made with.
type Handle struct {
	// Profile is the name of the profile that the plugin is made for.
	Profile string
	Log     logr.Logger
}

// Factory makes a plugin. Its error should begin with the field of the arguments that it is about.
type Factory func(args Args, handle Handle) (Plugin, error)

// Registry has the factories of all plugins that profiles may name. It is not safe to be changed by many at once.
type Registry map[string]Factory

// Register adds a plugin. It is an error if there is one of that name.
func (r Registry) Register(name string, factory Factory) error {
	switch _, taken := r[name]; {
	case name == "":
		return errors.New("register a plugin: it has no name")
	case factory == nil:
		return fmt.Errorf("register plugin %s: it has no factory", name)
	case taken:
		return fmt.Errorf("register plugin %s: there is one of that name already", name)
	}
	r[name] = factory
	return nil
}
