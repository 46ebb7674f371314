package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// RebuildOptions are the options of [Rebuild].
type RebuildOptions struct {
	// Members are the clusters whose hub was lost. At least one is required.
	Members []*rest.Config
	// Namespace of the agents on the members. Default: muster-system.
	Namespace string
	// Hub is the name of the hub in the agents' options, as in [RegisterOptions]. Default: none.
	Hub string
	// RegistrationNamespace of the hub. Rebuild creates it. Default: muster-registration.
	RegistrationNamespace string
	// Timeout bounds the wait for the hub's controllers to issue a bootstrap credential. Default: ten minutes, in which
	// they can be started.
	Timeout time.Duration
	// Wait is how long to wait for each member to join. Default: Rebuild does not wait.
	Wait time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

// RebuildToken is the name of the JoinToken that [Rebuild] creates. It expires after a day.
const RebuildToken = "rebuild"

// Rebuild restores an empty hub to the state of one that was lost without a backup, from the records of the agents of
// its members. No object on any member is deleted or created again.
//
// Call Rebuild after the CustomResourceDefinitions are installed and before the hub's controllers run. It gives the
// hub the identity of the lost one, with a later epoch; creates the MemberClusters that do not exist, accepted, with
// their names, cluster IDs and claims; waits for the hub's controllers, which must be started then, to issue a
// bootstrap credential; and stores that credential on each member. The agents register again as the same members.
//
// Labels and taints of the MemberClusters are not recorded on members: apply them from their source. Objects that the
// lost hub had applied are reported as orphans until Placements and WorkSets are applied again, which adopt them.
//
// Rebuild may be repeated after an error. It changes no MemberCluster that exists, and returns an error for a hub with
// another identity, and for members of different hubs: use [Move] for those.
//
// It requires on the hub get, create and update on configmaps and create on namespaces; get, list and create on
// memberclusters; and the permissions of [CreateToken]. On each member it requires get on the agent's Secret and the
// permissions of [Register].
func Rebuild(ctx context.Context, config *rest.Config, o RebuildOptions) error {
	if len(o.Members) == 0 {
		return &membership.InvalidError{Field: "Members", Problem: "must not be empty: a hub is rebuilt from its members"}
	}
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	o.RegistrationNamespace = orDefault(o.RegistrationNamespace, membership.RegistrationNamespace)
	o.Timeout = orDefault(o.Timeout, 10*time.Minute)
	hub, err := connect(Hub, config)
	if err != nil {
		return err
	}
	r := &rebuild{RebuildOptions: o, hub: hub, progress: o.Progress}
	if err := r.progress.do("read the registrations of the agents",
		func() (string, error) { return r.read(ctx) }); err != nil {
		return err
	}
	if err := r.progress.makeNamespace(ctx, hub, o.RegistrationNamespace); err != nil {
		return err
	}
	if err := r.progress.do("restore the identity of the hub",
		func() (string, error) { return r.identify(ctx) }); err != nil {
		return err
	}
	for i := range r.members {
		doing := "create MemberCluster " + r.members[i].Name
		if err := r.progress.do(doing, func() (string, error) { return r.create(ctx, r.members[i]) }); err != nil {
			return err
		}
	}
	return r.register(ctx, config)
}

// rebuild is one call of Rebuild.
type rebuild struct {
	RebuildOptions
	hub      *cluster
	members  []*agent.Registration
	progress reporter
}

// read reads the registrations of all members, before any object is changed.
func (r *rebuild) read(ctx context.Context) (string, error) {
	for _, config := range r.Members {
		member, err := connect(Member, config)
		if err != nil {
			return "", err
		}
		is, err := registrationOf(ctx, member, r.Namespace, r.Hub)
		if err != nil {
			return "", err
		}
		r.members = append(r.members, is)
	}
	return r.sameHub()
}

// sameHub returns an error unless all members belong to one hub, which has an identity. It is called before any object
// is changed.
func (r *rebuild) sameHub() (string, error) {
	first := r.members[0]
	for _, is := range r.members {
		switch is.HubID {
		case "":
			return "", fmt.Errorf("member %s: its hub had no identity, so the rebuilt hub cannot be recognized", is.Name)
		case first.HubID:
		default:
			return "", fmt.Errorf("member %s is of hub %s, and member %s is of hub %s: rebuild one hub at a time",
				first.Name, first.HubID, is.Name, is.HubID)
		}
	}
	return fmt.Sprintf("%d members of hub %s", len(r.members), first.HubID), nil
}

// identify stores the identity of the lost hub, with an epoch that is later than all observed epochs of the agents.
func (r *rebuild) identify(ctx context.Context) (string, error) {
	id, epoch := r.members[0].HubID, int64(0)
	for _, member := range r.members {
		epoch = max(epoch, member.HubEpoch+1)
	}
	key := client.ObjectKey{Namespace: r.RegistrationNamespace, Name: membership.HubConfigMap}
	stored, err := found(ctx, r.hub, key, &corev1.ConfigMap{})
	if err != nil {
		return "", err
	}
	if stored == nil {
		stored = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Data:       map[string]string{membership.HubIDKey: id, membership.HubEpochKey: strconv.FormatInt(epoch, 10)},
		}
		return "ConfigMap " + key.String(), r.hub.explain("create ConfigMap "+key.String(), r.hub.Create(ctx, stored))
	}
	if other := stored.Data[membership.HubIDKey]; other != id {
		return "", fmt.Errorf("ConfigMap %s has the identity %s, and the members are of hub %s: to replace that hub with "+
			"this one, stop the controllers of this hub, delete the ConfigMap and repeat; otherwise move the members",
			key, other, id)
	}
	if known, err := strconv.ParseInt(stored.Data[membership.HubEpochKey], 10, 64); err == nil && known >= epoch {
		return "the hub has the identity already", nil
	}
	stored.Data[membership.HubEpochKey] = strconv.FormatInt(epoch, 10)
	return "raised the epoch in ConfigMap " + key.String(),
		r.hub.explain("update ConfigMap "+key.String(), r.hub.Update(ctx, stored))
}

// create creates the MemberCluster of a member, unless there is one with its name, its claim or its cluster ID.
func (r *rebuild) create(ctx context.Context, is *agent.Registration) (string, error) {
	var existing v1alpha1.MemberClusterList
	if err := r.hub.List(ctx, &existing); err != nil {
		return "", r.hub.explain("list MemberClusters", err)
	}
	same := slices.IndexFunc(existing.Items, func(m v1alpha1.MemberCluster) bool {
		return m.Spec.Claim == is.Claim || m.Spec.ClusterID == is.ClusterID
	})
	if same >= 0 {
		return "the MemberCluster exists, with the name " + existing.Items[same].Name, nil
	}
	member := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: is.Name,
		Finalizers: []string{membership.Finalizer}}}
	member.Spec.ClusterID, member.Spec.Claim, member.Spec.Accepted = is.ClusterID, is.Claim, new(true)
	err := r.hub.Create(ctx, member)
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("MemberCluster %s exists, and is of another cluster than the member of that name: %w",
			is.Name, ErrNameTaken)
	}
	return "", r.hub.explain("create MemberCluster "+is.Name, err)
}

// register stores a bootstrap credential of the hub on each member. A member that fails does not stop the others.
func (r *rebuild) register(ctx context.Context, config *rest.Config) error {
	_, bootstrap, err := CreateToken(ctx, config, TokenOptions{
		Name: RebuildToken, Namespace: r.RegistrationNamespace, Timeout: r.Timeout, Progress: r.Progress,
		Spec: v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(24 * time.Hour / time.Second))},
	})
	if err != nil {
		return err
	}
	var errs []error
	for i, member := range r.Members {
		err := Register(ctx, member, bootstrap, RegisterOptions{
			Namespace: r.Namespace, Hub: r.Hub, Replace: true, Wait: r.Wait, Progress: r.Progress,
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("member %s: %w", r.members[i].Name, err))
		}
	}
	return errors.Join(errs...)
}
