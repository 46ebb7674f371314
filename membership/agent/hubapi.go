package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requestTimeout is the timeout of each request except watches.
const requestTimeout = 10 * time.Second

const (
	memberships  = "memberships"
	joinRequests = "joinrequests"
)

// codecs are shared by all agents of a process, and never change.
var codecs = sync.OnceValues(func() (serializer.CodecFactory, runtime.ParameterCodec) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err) // a programming error in the types
	}
	return serializer.NewCodecFactory(scheme), runtime.NewParameterCodec(scheme)
})

// hubAPI is a client for one namespace of the hub. It knows the paths of the few resources that an agent uses, so it
// needs no discovery and no cache.
type hubAPI struct {
	client     *rest.RESTClient
	parameters runtime.ParameterCodec
	namespace  string
}

func newHubAPI(l *link, namespace string) (*hubAPI, error) {
	factory, parameters := codecs()
	config := rest.CopyConfig(l.config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = factory.WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON // the only type for custom resources
	config.AcceptContentTypes = runtime.ContentTypeJSON
	client, err := rest.RESTClientForConfigAndClient(config, l.client)
	if err != nil {
		return nil, fmt.Errorf("create a client for the hub at %s: %w", config.Host, err)
	}
	return &hubAPI{client: client, parameters: parameters, namespace: namespace}, nil
}

func (h *hubAPI) createRequest(ctx context.Context, request *v1alpha1.JoinRequest) (*v1alpha1.JoinRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	created := &v1alpha1.JoinRequest{}
	return created, h.client.Post().Namespace(h.namespace).Resource(joinRequests).Body(request).Do(ctx).Into(created)
}

func (h *hubAPI) getRequest(ctx context.Context, name string) (*v1alpha1.JoinRequest, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request := &v1alpha1.JoinRequest{}
	return request, h.client.Get().Namespace(h.namespace).Resource(joinRequests).Name(name).Do(ctx).Into(request)
}

// self selects the only Membership of the namespace.
func self() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + membership.MembershipName}
}

// listMembership returns a list of the Membership. A list has a version to watch from, and it distinguishes a missing
// Membership from a missing resource type, which is an error.
func (h *hubAPI) listMembership(ctx context.Context) (*v1alpha1.MembershipList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options, list := self(), &v1alpha1.MembershipList{}
	err := h.client.Get().Namespace(h.namespace).Resource(memberships).VersionedParams(&options,
		h.parameters).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("read the Membership: %w", err)
	}
	return list, nil
}

// watchMembership watches the Membership until the API server ends the watch, which happens after half an hour or
// more.
func (h *hubAPI) watchMembership(ctx context.Context, version string) (watch.Interface, error) {
	options := self()
	options.Watch, options.ResourceVersion, options.AllowWatchBookmarks = true, version, true
	return h.client.Get().Namespace(h.namespace).Resource(memberships).VersionedParams(&options, h.parameters).Watch(ctx)
}

func (h *hubAPI) updateStatus(ctx context.Context, m *v1alpha1.Membership) (*v1alpha1.Membership, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m = m.DeepCopy()
	m.ManagedFields = nil // the API server keeps the existing ones
	updated := &v1alpha1.Membership{}
	return updated, h.client.Put().Namespace(h.namespace).Resource(memberships).Name(m.Name).SubResource("status").Body(m).
		Do(ctx).Into(updated)
}

// sighting is an observation of the hub, with the Membership if the state is HubSeen.
type sighting struct {
	state      lifecycle.HubState
	membership *v1alpha1.Membership
	revision   string // of its list; empty: it is not from a list
	lagging    bool   // it is from a watch, which may lag behind the response to a write
}

// hubStateOf converts a list of the Membership, or its error, to an observation of this member.
func hubStateOf(list *v1alpha1.MembershipList, err error, member registered) sighting {
	switch {
	case err == nil && len(list.Items) == 0:
		return sighting{state: lifecycle.HubGone}
	case err == nil && otherHub(list.Items[0].Spec.Hub, member.HubID):
		return sighting{state: lifecycle.HubOther}
	case err == nil && list.Items[0].Spec.MemberUID != member.UID:
		// The claim identifies the member. Without it, a MemberCluster that was created again is another member.
		if claim := list.Items[0].Spec.Claim; claim != "" && claim == member.claim {
			return sighting{state: lifecycle.HubReplaced, membership: &list.Items[0]}
		}
		return sighting{state: lifecycle.HubOther}
	case err == nil:
		return sighting{state: lifecycle.HubSeen, membership: &list.Items[0]}
	case refusal(err):
		return sighting{state: lifecycle.HubRefused}
	default:
		return sighting{state: lifecycle.HubUnreachable}
	}
}

// otherHub reports whether a Membership belongs to another hub than the one that the agent is registered with.
func otherHub(is *v1alpha1.HubIdentity, known string) bool {
	return is != nil && known != "" && is.ID != known
}

// refusal reports whether err means that the hub refuses the credential.
func refusal(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }
