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

// JoinOptions say how [Join] is to register a cluster. Only Name has to be set.
type JoinOptions struct {
	// Name of the member: a DNS label of at most 63 characters. Required.
	Name string
	// ClusterID tells the cluster from all others. Empty: the UID of its namespace kube-system.
	ClusterID string
	// Labels that its MemberCluster gets. Others that it has stay.
	Labels map[string]string
	// Hold leaves it to somebody else to accept the member; Join does not wait then. False: Join accepts it.
	Hold bool

	// ClusterRole is what the hub may do on the member. Empty: cluster-admin, since an agent applies whatever Works
	// hold. It is there already.
	ClusterRole string
	// Rules are what the hub may do on the member instead: a ClusterRole is made of them. An agent needs those of the
	// folders rbac of packages membership/agent and work/agent, and what Works hold.
	Rules []rbacv1.PolicyRule
	// TokenLifetime is how long the hub's token works. Nobody renews it but another Join. The member's API server may grant
	// less, and its minimum is ten minutes. Zero: until it is taken away.
	TokenLifetime time.Duration

	// Server is the URL of scheme https at which the hub reaches the member. Empty: the one of the member's config.
	Server string
	// CA is the PEM-encoded bundle that the server's certificate is verified by. Empty: that of the member's config.
	CA []byte
	// ProxyURL is the proxy by which the hub reaches the member: a URL of scheme http, https or socks5. Empty: the one of the member's
	// config, or none if Server is set. What the environment of this process says does not count; that of the hub does where there is none.
	ProxyURL string
	// ProxyHeaders are sent to that proxy with CONNECT. They are kept with the credential, as they may be one.
	ProxyHeaders map[string]string

	// MemberNamespace is where the hub's ServiceAccount is. It is made if it is not there. Empty: muster-system.
	MemberNamespace string
	// ConnectionNamespace of the hub is where the kubeconfig goes. It is made if it is not there. Empty: muster-connections.
	ConnectionNamespace string

	// Prepare is called with a client of the member, before that is registered, to install there what its agent needs, such as
	// InstallOnMember of package work/crds. It is called each time. Nil: nothing is done.
	Prepare func(ctx context.Context, member client.Client) error

	// Timeout bounds the wait for the member to have joined. Zero: two minutes. Negative: Join does not wait.
	Timeout time.Duration
	// Progress is told each step.
	Progress func(Step)
}

func (o JoinOptions) withDefaults() (JoinOptions, error) {
	if err := checkName("Name", o.Name); err != nil {
		return o, err
	}
	if o.Rules != nil && o.ClusterRole != "" {
		return o, &membership.InvalidError{Field: "Rules", Problem: "ClusterRole is set as well: it is one or the other"}
	}
	if o.TokenLifetime != 0 && o.TokenLifetime < 10*time.Minute {
		return o, &membership.InvalidError{Field: "TokenLifetime", Problem: "must be ten minutes or more, which is the API server's minimum, or zero for a token that does not end"}
	}
	o.ClusterRole = orDefault(o.ClusterRole, defaultClusterRole)
	o.MemberNamespace = orDefault(o.MemberNamespace, agent.DefaultNamespace)
	o.ConnectionNamespace = orDefault(o.ConnectionNamespace, membership.ConnectionNamespace)
	o.Timeout = orDefault(o.Timeout, 2*time.Minute)
	return o, nil
}

// Join registers a cluster that the hub reaches itself, and whose agent the hub runs (joinMode Push).
//
// It looks first whether anything stands in the way, and if so changes nothing and returns a [*PreflightError]. Then it
// makes, on the member, a ServiceAccount with its token and a ClusterRoleBinding to what the hub may do; on the hub, the
// MemberCluster, and the Secret with the kubeconfig, in the format of cluster-api, which belongs to the MemberCluster. Then it
// waits until the member has joined, for which a hub has to be running. If somebody has registered the cluster at the same time
// by another name, and was first, it takes the MemberCluster back.
//
// A cluster that is such a member already gets what is missing, or has changed, and what [Deny] or a leave had said is
// taken back. That it is a member under another name, of another hub, or by an agent of its own is [ErrClusterTaken], and
// a name that another cluster has is [ErrNameTaken].
//
// Undo it by [Unjoin]. Whoever deletes the MemberCluster instead deletes the Secret as well, and what was made on the member stays
// there: the token works until Unjoin is given the member's own kubeconfig, or [Clean] removes it.
//
// On the hub it needs get, list, create, patch and delete on memberclusters; get and create on namespaces; get, create and
// update on secrets in the connection namespace. On the member, get and create on namespaces, serviceaccounts,
// clusterrolebindings and secrets, those in its namespace there; with Rules also get, create and patch on
// clusterroles; with TokenLifetime create on serviceaccounts/token; and the rights that the hub is given. With list on secrets in that namespace it also
// sees an agent whose hub has a name.
func Join(ctx context.Context, hub, member *rest.Config, o JoinOptions) (*v1alpha1.MemberCluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &join{JoinOptions: o, tell: o.Progress}
	if j.hub, err = connect(Hub, hub); err != nil {
		return nil, err
	}
	if j.member, err = connect(Member, member); err != nil {
		return nil, err
	}
	if err := j.tell.do("look whether anything stands in the way", func() (string, error) { return "", j.preflight(ctx) }); err != nil {
		return nil, err
	}
	if err := j.tell.prepare(ctx, j.member, o.Prepare); err != nil {
		return nil, err
	}
	token, err := j.access.grant(ctx)
	if err != nil {
		return nil, err
	}
	if err := j.tell.do("register the member with the hub", func() (string, error) { return j.register(ctx, token) }); err != nil {
		return nil, err
	}
	if o.Hold || o.Timeout < 0 {
		return j.cluster, nil
	}
	return j.cluster, j.await(ctx)
}

// join is one Join under way.
type join struct {
	JoinOptions
	hub, member *cluster
	tell        teller
	endpoint    endpoint
	access      access
	cluster     *v1alpha1.MemberCluster // as last seen; nil: there is none
}

// register writes the MemberCluster and then the Secret, which belongs to it.
func (j *join) register(ctx context.Context, token string) (string, error) {
	detail := "it was registered already"
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
		detail = fmt.Sprintf("MemberCluster %s, by Secret %s/%s", j.Name, j.ConnectionNamespace, connectionSecret(j.Name))
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
	spec.KubeConfigSecretRef = &v1alpha1.KubeConfigSecretRef{Name: connectionSecret(j.Name), Namespace: j.ConnectionNamespace, Key: kubeConfigKey}
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

// alone takes back the MemberCluster if somebody has registered the same cluster at the same time, and was first.
func (j *join) alone(ctx context.Context) error {
	others, err := j.others(ctx)
	if err != nil {
		return err
	}
	for _, other := range others {
		mine := j.cluster.CreationTimestamp
		if other.CreationTimestamp.Before(&mine) || other.CreationTimestamp.Equal(&mine) && other.Name < j.Name {
			return fmt.Errorf("cluster %s has just become member %s: %w", j.ClusterID, other.Name, errors.Join(ErrClusterTaken, j.hub.remove(ctx, j.cluster)))
		}
	}
	return nil
}

// others are the other members with the cluster ID.
func (j *join) others(ctx context.Context) ([]v1alpha1.MemberCluster, error) {
	var list v1alpha1.MemberClusterList
	if err := j.hub.List(ctx, &list, client.MatchingFields{"spec.clusterID": j.ClusterID}); err != nil {
		return nil, j.hub.explain("look for members with the cluster ID", err)
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
	return j.tell.await(ctx, fmt.Sprintf("wait until %s has joined", j.Name), j.Timeout, func(ctx context.Context) (seen, error) {
		cluster, err := found(ctx, j.hub, client.ObjectKey{Name: j.Name}, &v1alpha1.MemberCluster{})
		if err != nil {
			return seen{}, err
		}
		if cluster == nil || cluster.UID != j.cluster.UID {
			return seen{}, fmt.Errorf("MemberCluster %s was deleted by somebody else: %w", j.Name, ErrNotFound)
		}
		j.cluster = cluster
		return standing(cluster)
	})
}
