package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// JoinOptions are the options of [Join]. Only Name is required.
type JoinOptions struct {
	// Name of the member: a DNS label of at most 63 characters. Required.
	Name string
	// ClusterID is the unique identifier of the cluster. Default: the UID of its namespace kube-system.
	ClusterID string
	// Labels are added to the MemberCluster. Other labels of the MemberCluster stay.
	Labels map[string]string
	// Hold leaves the acceptance of the member to another user, and Join does not wait. Default: Join accepts the member.
	Hold bool

	// ClusterRole is an existing ClusterRole that the hub gets on the member. Default: cluster-admin, because the agent
	// applies the contents of Works.
	ClusterRole string
	// Rules are permissions that the hub gets on the member instead of ClusterRole: Join creates a ClusterRole with them.
	// An agent needs the rules of the folders rbac of packages membership/agent and work/agent, and those for the contents
	// of Works.
	Rules []rbacv1.PolicyRule
	// TokenLifetime is the lifetime of the hub's token. Only another Join renews the token. The member's API server may
	// grant less, and its minimum is ten minutes. Zero: the token is valid until it is revoked.
	TokenLifetime time.Duration

	// Server is the https URL at which the hub reaches the member. Default: that of the member's config.
	Server string
	// CA is the PEM-encoded bundle that verifies the server's certificate. Default: that of the member's config.
	CA []byte
	// ProxyURL is the proxy by which the hub reaches the member: an http, https or socks5 URL. Default: that of the
	// member's config, or none if Server is set. The environment of this process has no effect; without a ProxyURL, the
	// environment of the hub applies.
	ProxyURL string
	// ProxyHeaders are sent to the proxy with CONNECT. They are stored with the credential, as they may be secret.
	ProxyHeaders map[string]string

	// MemberNamespace is the namespace of the hub's ServiceAccount. Join creates it. Default: muster-system.
	MemberNamespace string
	// ConnectionNamespace is the namespace of the kubeconfig on the hub. Join creates it. Default: muster-connections.
	ConnectionNamespace string

	// Prepare is called with a client of the member before the registration, to install the definitions that the agent
	// needs, for example InstallOnMember of package work/crds. It is called by every Join. Optional.
	Prepare func(ctx context.Context, member client.Client) error

	// Timeout for the member to join. Default: two minutes. Negative: Join does not wait.
	Timeout time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

func (o JoinOptions) withDefaults() (JoinOptions, error) {
	if err := checkName("Name", o.Name); err != nil {
		return o, err
	}
	if o.Rules != nil && o.ClusterRole != "" {
		return o, &membership.InvalidError{Field: "Rules", Problem: "cannot be combined with ClusterRole"}
	}
	if o.TokenLifetime != 0 && o.TokenLifetime < 10*time.Minute {
		return o, &membership.InvalidError{Field: "TokenLifetime", Problem: "must be ten minutes or more, which is " +
			"the API server's minimum, or zero for a token that does not end"}
	}
	o.ClusterRole = orDefault(o.ClusterRole, defaultClusterRole)
	o.MemberNamespace = orDefault(o.MemberNamespace, agent.DefaultNamespace)
	o.ConnectionNamespace = orDefault(o.ConnectionNamespace, membership.ConnectionNamespace)
	o.Timeout = orDefault(o.Timeout, 2*time.Minute)
	return o, nil
}

// Join registers a cluster that the hub can reach, and whose agent the hub runs (joinMode Push).
//
// Join first runs all checks. If one fails, it changes nothing and returns a [*PreflightError]. Then it creates, on
// the member, a ServiceAccount with a token and a ClusterRoleBinding for the hub; and on the hub, the MemberCluster
// and the Secret with the kubeconfig in the format of cluster-api, which the MemberCluster owns. Then it waits until
// the member has joined, which requires a running hub. If another user registers the same cluster concurrently with
// another name and is first, Join deletes its MemberCluster.
//
// For an existing member of the same kind, Join creates or updates what is missing or different, and reverts [Deny] or
// a leave. The error is [ErrClusterTaken] if the cluster is a member with another name, of another hub, or with its own
// agent, and [ErrNameTaken] if another cluster has the name.
//
// To revert Join, use [Unjoin]. A deletion of the MemberCluster also deletes the Secret, while the objects on the
// member stay: the token is valid until Unjoin is called with the member's own kubeconfig, or [Clean] removes it.
//
// Join requires on the hub get, list, create, patch and delete on memberclusters; get and create on namespaces; get,
// create and update on secrets in the connection namespace. On the member, it requires get and create on namespaces,
// serviceaccounts, clusterrolebindings and secrets (in the member namespace); with Rules also get, create and patch on
// clusterroles; with TokenLifetime create on serviceaccounts/token; and all permissions that the hub gets. With list on
// secrets in that namespace, it also finds an agent whose hub has a name.
func Join(ctx context.Context, hub, member *rest.Config, o JoinOptions) (*v1alpha1.MemberCluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &join{JoinOptions: o, progress: o.Progress}
	if j.hub, err = connect(Hub, hub); err != nil {
		return nil, err
	}
	if j.member, err = connect(Member, member); err != nil {
		return nil, err
	}
	if err := j.progress.do("run the preflight checks",
		func() (string, error) { return "", j.preflight(ctx) }); err != nil {
		return nil, err
	}
	if err := j.progress.prepare(ctx, j.member, o.Prepare); err != nil {
		return nil, err
	}
	token, err := j.access.grant(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.progress.do("register the member with the hub",
		func() (string, error) { return j.register(ctx, token) }); err != nil {
		return nil, err
	}
	if o.Hold || o.Timeout < 0 {
		return j.cluster, nil
	}
	return j.cluster, j.await(ctx)
}

// join is one call of Join.
type join struct {
	JoinOptions
	hub, member *cluster
	progress    reporter
	endpoint    endpoint
	access      access
	cluster     *v1alpha1.MemberCluster // as last observed; nil: none
}

// register writes the MemberCluster and then the Secret, which the MemberCluster owns.
func (j *join) register(ctx context.Context, token string) (string, error) {
	detail := "the member was registered already"
	wrote, err := j.writeCluster(ctx)
	if err != nil {
		return "", err
	}
	if err := j.alone(ctx); err != nil {
		return "", err
	}
	stored, err := j.writeSecret(ctx, token)
	if err != nil {
		return "", err
	}
	if wrote || stored {
		detail = fmt.Sprintf("MemberCluster %s, with Secret %s/%s", j.Name, j.ConnectionNamespace, connectionSecret(j.Name))
	}
	return detail, nil
}

func (j *join) writeCluster(ctx context.Context) (changed bool, err error) {
	cluster := &v1alpha1.MemberCluster{}
	cluster.Name = j.Name
	if j.cluster != nil {
		cluster = j.cluster.DeepCopy()
	}
	spec := &cluster.Spec
	spec.ClusterID, spec.JoinMode, spec.State = j.ClusterID, v1alpha1.JoinPush, v1alpha1.StateJoin
	spec.KubeConfigSecretRef = &v1alpha1.KubeConfigSecretRef{Name: connectionSecret(j.Name),
		Namespace: j.ConnectionNamespace, Key: kubeConfigKey}
	if !j.Hold {
		spec.Accepted = new(true)
	}
	if cluster.Labels == nil && len(j.Labels) > 0 {
		cluster.Labels = map[string]string{}
	}
	maps.Copy(cluster.Labels, j.Labels)
	switch {
	case j.cluster == nil:
		err = j.hub.Create(ctx, cluster)
	case equality.Semantic.DeepEqual(j.cluster, cluster):
		return false, nil
	default:
		err = j.hub.Patch(ctx, cluster, client.MergeFromWithOptions(j.cluster, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return false, j.hub.explain("write MemberCluster "+j.Name, err)
	}
	j.cluster = cluster
	return true, nil
}

// alone deletes the MemberCluster if another user has concurrently registered the same cluster and was first.
func (j *join) alone(ctx context.Context) error {
	others, err := j.others(ctx)
	if err != nil {
		return err
	}
	for _, other := range others {
		mine := j.cluster.CreationTimestamp
		if other.CreationTimestamp.Before(&mine) || other.CreationTimestamp.Equal(&mine) && other.Name < j.Name {
			return fmt.Errorf("cluster %s has just become member %s: %w", j.ClusterID, other.Name,
				errors.Join(ErrClusterTaken, j.hub.removeRequested(ctx, j.cluster)))
		}
	}
	return nil
}

// others returns the other members with the cluster ID.
func (j *join) others(ctx context.Context) ([]v1alpha1.MemberCluster, error) {
	var list v1alpha1.MemberClusterList
	if err := j.hub.List(ctx, &list, client.MatchingFields{"spec.clusterID": j.ClusterID}); err != nil {
		return nil, j.hub.explain("find members with the cluster ID", err)
	}
	var others []v1alpha1.MemberCluster
	for _, other := range list.Items {
		if other.Name != j.Name {
			others = append(others, other)
		}
	}
	return others, nil
}

// await waits until the member has joined.
func (j *join) await(ctx context.Context) error {
	return j.progress.await(ctx, fmt.Sprintf("wait until %s has joined", j.Name), j.Timeout,
		func(ctx context.Context) (seen, error) {
			cluster, err := found(ctx, j.hub, client.ObjectKey{Name: j.Name}, &v1alpha1.MemberCluster{})
			if err != nil {
				return seen{}, err
			}
			if cluster == nil || cluster.UID != j.cluster.UID {
				return seen{}, fmt.Errorf("MemberCluster %s was deleted concurrently: %w", j.Name, ErrNotFound)
			}
			j.cluster = cluster
			return memberStatus(cluster)
		})
}
