package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"sigs.k8s.io/yaml"
)

// Args are the arguments of a plugin in a profile, in JSON. Empty: no arguments. A plugin that requires arguments
// returns an error in this case.
type Args = json.RawMessage

// DecodeArgs decodes arguments into a struct with json tags. Fields that the arguments do not contain keep their
// values. The error names a field that does not exist or has the wrong type.
func DecodeArgs(args Args, into any) error {
	if len(args) == 0 {
		return nil
	}
	if err := yaml.UnmarshalStrict(args, into); err != nil {
		// Keep the cause only, without the prefixes that describe the conversion.
		text := err.Error()
		if i := strings.LastIndex(text, "json: "); i >= 0 {
			text = text[i+len("json: "):]
		}
		return errors.New(text)
	}
	return nil
}

// Handle is the input of a plugin's [Factory].
type Handle struct {
	// Profile is the name of the profile that contains the plugin.
	Profile string
	Log     logr.Logger
}

// Factory creates a plugin. Its error should begin with the invalid field of the arguments.
type Factory func(args Args, handle Handle) (Plugin, error)

// Registry contains the factories of all plugins that profiles may name. It must not be changed concurrently.
type Registry map[string]Factory

// Register adds a plugin. It returns an error if the name is already registered.
func (r Registry) Register(name string, factory Factory) error {
	switch _, taken := r[name]; {
	case name == "":
		return errors.New("register a plugin: the name must not be empty")
	case factory == nil:
		return fmt.Errorf("register plugin %s: the factory must not be nil", name)
	case taken:
		return fmt.Errorf("register plugin %s: a plugin with this name is already registered", name)
	}
	r[name] = factory
	return nil
}
