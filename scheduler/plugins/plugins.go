package plugins

import (
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/apiavailability"
	"github.com/muster-sdk/muster/scheduler/plugins/balance"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/plugins/externalscore"
	"github.com/muster-sdk/muster/scheduler/plugins/groupspread"
	"github.com/muster-sdk/muster/scheduler/plugins/objectpolicy"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/propertysorter"
	"github.com/muster-sdk/muster/scheduler/plugins/resourcefit"
	"github.com/muster-sdk/muster/scheduler/plugins/steadiness"
	"github.com/muster-sdk/muster/scheduler/plugins/tainttoleration"
	"github.com/muster-sdk/muster/scheduler/plugins/topologyspread"
)

// Registry returns a new registry with all plugins of muster. Further plugins can be added to it.
func Registry() scheduler.Registry {
	return scheduler.Registry{
		apiavailability.Name: apiavailability.New,
		balance.Name:         balance.New,
		clusteraffinity.Name: clusteraffinity.New(propertyaffinity.Matcher(), celaffinity.Matcher(celaffinity.Options{})),
		eligibility.Name:     eligibility.New,
		externalscore.Name:   externalscore.New,
		groupspread.Name:     groupspread.New,
		objectpolicy.Name:    objectpolicy.New,
		propertysorter.Name:  propertysorter.New,
		resourcefit.Name:     resourcefit.New,
		steadiness.Name:      steadiness.New,
		tainttoleration.Name: tainttoleration.New,
		topologyspread.Name:  topologyspread.New,
	}
}

// DefaultProfile returns a profile that supports all fields of a policy. The preferences of a policy have ten times the
// weight of the preferences for the fleet, so that the latter decide only among clusters for which the policy has no
// preference. Steadiness has the weight of a policy preference: if a policy rebalances, a small gain by one sorter
// moves nothing. ExternalScore is not included, because it requires arguments.
func DefaultProfile() scheduler.Profile {
	return scheduler.Profile{Plugins: []scheduler.PluginConfig{
		{Name: eligibility.Name},
		{Name: tainttoleration.Name, Weight: 10},
		{Name: clusteraffinity.Name, Weight: 10},
		{Name: apiavailability.Name},
		{Name: objectpolicy.Name},
		{Name: resourcefit.Name},
		{Name: propertysorter.Name, Weight: 10},
		{Name: steadiness.Name, Weight: 10},
		{Name: balance.Name},
		// GroupSpread precedes TopologySpread, which chooses from the remaining clusters.
		{Name: groupspread.Name},
		{Name: topologyspread.Name},
	}}
}
