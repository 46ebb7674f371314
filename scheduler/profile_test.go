package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestNew_InvalidProfiles checks that New rejects invalid profiles, and that the error names the profile, the plugin
// and the field.
func TestNew_InvalidProfiles(t *testing.T) {
	type args struct {
		Limit int `json:"limit"`
	}
	registry := scheduler.Registry{
		"P": func(a scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
			with := args{Limit: 1}
			if err := scheduler.DecodeArgs(a, &with); err != nil {
				return nil, err
			}
			if with.Limit < 1 {
				return nil, errors.New("limit: must be positive")
			}
			return &everything{name: "P"}, nil
		},
		"OtherName": func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return &everything{name: "P"}, nil },
		"Nothing":   func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return nil, nil },
		"Panics":    func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { panic("no") },
	}
	with := func(configs ...scheduler.PluginConfig) []scheduler.Profile {
		return []scheduler.Profile{{Plugins: configs}}
	}
	for _, test := range []struct {
		reason   string
		profiles []scheduler.Profile
		want     string // empty: no error
	}{
		{"no profile", nil, "profiles: must have at least one profile"},
		{"duplicate profile name", []scheduler.Profile{{}, {Name: "default"}},
			`profiles[1]: name: duplicate profile "default"`},
		{"negative timeout", []scheduler.Profile{{Timeout: -time.Second}}, "profiles[0]: timeout: -1s is negative"},
		{"unknown plugin", with(scheduler.PluginConfig{Name: "P"}, scheduler.PluginConfig{Name: "Q"}),
			"profiles[0]: plugins[1] (Q): no plugin with this name is registered"},
		{"duplicate plugin", with(scheduler.PluginConfig{Name: "P"}, scheduler.PluginConfig{Name: "P"}),
			"profiles[0]: plugins[1] (P): the profile contains the plugin more than once"},
		{"weight is too large", with(scheduler.PluginConfig{Name: "P", Weight: 101}),
			"profiles[0]: plugins[0] (P): weight: 101 is not from 1 to 100"},
		{"negative weight", with(scheduler.PluginConfig{Name: "P", Weight: -1}),
			"profiles[0]: plugins[0] (P): weight: -1 is not from 1 to 100"},
		{"invalid argument", with(scheduler.PluginConfig{Name: "P", Args: scheduler.Args(`{"limit":0}`)}),
			"profiles[0]: plugins[0] (P): args: limit: must be positive"},
		{"unknown argument", with(scheduler.PluginConfig{Name: "P", Args: scheduler.Args(`{"limits":1}`)}),
			`profiles[0]: plugins[0] (P): args: unknown field "limits"`},
		{"argument of another type", with(scheduler.PluginConfig{Name: "P", Args: scheduler.Args(`{"limit":"many"}`)}),
			`profiles[0]: plugins[0] (P): args: cannot unmarshal string into Go struct field args.limit of type int`},
		{"arguments that are not YAML", with(scheduler.PluginConfig{Name: "P", Args: scheduler.Args(`{"limit":`)}),
			"profiles[0]: plugins[0] (P): args: error converting YAML to JSON: yaml: line 1: did not find expected node " +
				"content"},
		{"factory returns a plugin with another name", with(scheduler.PluginConfig{Name: "OtherName"}),
			`profiles[0]: plugins[0] (OtherName): the factory returned a plugin with the name "P"`},
		{"factory returns nil", with(scheduler.PluginConfig{Name: "Nothing"}),
			"profiles[0]: plugins[0] (Nothing): the factory of the plugin returned nil"},
		{"factory panics", with(scheduler.PluginConfig{Name: "Panics"}),
			"profiles[0]: plugins[0] (Panics): the factory of the plugin panicked: no"},
		{"all errors are reported at once", []scheduler.Profile{{Timeout: -1}, {Name: "b", Timeout: -1}},
			"profiles[0]: timeout: -1ns is negative\nprofiles[1]: timeout: -1ns is negative"},
		{"valid profiles",
			[]scheduler.Profile{
				{Plugins: []scheduler.PluginConfig{{Name: "P", Weight: 100, Args: scheduler.Args(`{"limit":3}`)}}},
				{Name: "none"}}, ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s, err := scheduler.New(scheduler.Options{Registry: registry, Profiles: test.profiles})
			if test.want == "" {
				require.NoError(t, err)
				require.NotNil(t, s)
				return
			}
			require.EqualError(t, err, test.want)
			require.Nil(t, s)
		})
	}
}

func TestRegistry_Register(t *testing.T) {
	factory := func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return nil, nil }
	registry := scheduler.Registry{}
	require.NoError(t, registry.Register("P", factory))
	require.EqualError(t, registry.Register("P", factory), "register plugin P: a plugin with this name is already "+
		"registered")
	require.EqualError(t, registry.Register("", factory), "register a plugin: the name must not be empty")
	require.EqualError(t, registry.Register("Q", nil), "register plugin Q: the factory must not be nil")
}

// TestSchedule_InvalidRequests checks that NewPolicy or the first Schedule reports an invalid request.
func TestSchedule_InvalidRequests(t *testing.T) {
	_, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Type: v1alpha1.PickN})
	require.ErrorContains(t, err, "policy.numberOfClusters")

	s := schedulerOf(t, &everything{name: "P"})
	_, err = s.Schedule(t.Context(), fleet("a"), &scheduler.Request{})
	require.EqualError(t, err, "request.policy: must not be nil")
	_, err = s.Schedule(t.Context(), fleet("a"), request(t, v1alpha1.PlacementPolicy{Profile: "fast"}))
	require.EqualError(t, err, `policy.profile: profile "fast" does not exist`)
	r := request(t, v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(1)),
		Prioritizers: []v1alpha1.Prioritizer{{Plugin: "Q", Weight: 1}}})
	_, err = s.Schedule(t.Context(), fleet("a"), r)
	require.EqualError(t, err, "policy.prioritizers[0].plugin: profile default has no scoring plugin Q")
}
