package assembly

import (
	"context"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
)

// PushAgent returns the Agent option of package membership/push for complete agents. Like an agent that [SetupAgent]
// sets up, each of them applies Works on its member, withholds deletions while the hub may be inconsistent, cleans up
// when the member leaves, and reports orphaned objects. If InstallDefinitions is set, the hub installs the definition
// of AppliedWork on the member, which requires the permissions that [AgentOptions] lists in the member's kubeconfig.
//
// An invalid option does not stop the hub. The agent reports the error as an error of its companion. The member cannot
// leave before the option is valid, because the objects on it could not be removed.
func PushAgent(o AgentOptions) func(fleet.Connected) agent.Options {
	return func(connected fleet.Connected) agent.Options {
		options := o.Membership
		options.Member = connected.Config
		if o.WithoutWorks {
			return options
		}
		if err := o.addWorks(&options, connected.Config); err != nil {
			options.Companions = append([]agent.Companion{failing{err}}, options.Companions...)
			options.Cleaners = append([]membership.LeaveGate{failing{err}}, options.Cleaners...)
			return options
		}
		if works := options.Companions[0]; o.InstallDefinitions {
			options.Companions[0] = agent.CompanionFunc(works.Name(), func(ctx context.Context, hub agent.Hub) error {
				if err := installMemberDefinitions(ctx, connected.Config); err != nil {
					return err
				}
				return works.Run(ctx, hub)
			})
		}
		return options
	}
}

// failing is a companion and a cleaner whose setup failed.
type failing struct{ err error }

func (f failing) Name() string { return "works" }

func (f failing) Run(context.Context, agent.Hub) error { return f.err }

func (f failing) Remaining(context.Context, membership.Member) ([]string, error) { return nil, f.err }
