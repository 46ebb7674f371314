package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=configmaps,verbs=get;list;create;update;delete

// hubIdentity reads and writes the hub's identity and epoch, which are stored in the ConfigMap
// [membership.HubConfigMap]. The first replica of a hub creates it; each process that becomes the leader increases the
// epoch once. It may be used concurrently.
type hubIdentity struct {
	client    client.Client
	reader    client.Reader // without a cache
	namespace string

	mu    sync.Mutex
	known *v1alpha1.HubIdentity // nil: this process has not increased the epoch yet
}

// get returns the identity, and the epoch of this process or a later one.
func (h *hubIdentity) get(ctx context.Context) (v1alpha1.HubIdentity, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known != nil {
		return *h.known, nil
	}
	return h.advance(ctx, 0)
}

// id returns the identity without the epoch.
func (h *hubIdentity) id(ctx context.Context) (string, error) {
	is, err := h.get(ctx)
	return is.ID, err
}

// raise increases the epoch to at least atLeast.
func (h *hubIdentity) raise(ctx context.Context, atLeast int64) (v1alpha1.HubIdentity, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known != nil && h.known.Epoch >= atLeast {
		return *h.known, nil
	}
	return h.advance(ctx, atLeast)
}

// advance increases the epoch. It returns a conflict with another replica, and the caller retries.
func (h *hubIdentity) advance(ctx context.Context, atLeast int64) (v1alpha1.HubIdentity, error) {
	key := client.ObjectKey{Namespace: h.namespace, Name: membership.HubConfigMap}
	stored := &corev1.ConfigMap{}
	err := h.reader.Get(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		return h.create(ctx, atLeast)
	}
	if err != nil {
		return v1alpha1.HubIdentity{}, fmt.Errorf("read the hub's identity from ConfigMap %s: %w", key, err)
	}
	is, err := parseIdentity(stored)
	if err != nil {
		return is, err
	}
	if h.known != nil && is.ID != h.known.ID {
		return is, fmt.Errorf("ConfigMap %s has the identity %q, and this hub is %q: restore key %s, or restart the hub to "+
			"use the other identity",
			key, is.ID, h.known.ID, membership.HubIDKey)
	}
	if h.known != nil {
		is.Epoch = max(is.Epoch, h.known.Epoch)
	}
	is.Epoch = max(is.Epoch+1, atLeast)
	stored.Data[membership.HubEpochKey] = strconv.FormatInt(is.Epoch, 10)
	if err := h.client.Update(ctx, stored); err != nil {
		return is, fmt.Errorf("increase the epoch in ConfigMap %s: %w", key, err)
	}
	h.known = &is
	return is, nil
}

// create stores an identity: that of this process or, if it has none, that of the Memberships, or else a new one.
func (h *hubIdentity) create(ctx context.Context, atLeast int64) (v1alpha1.HubIdentity, error) {
	is := v1alpha1.HubIdentity{ID: string(uuid.NewUUID())}
	if h.known != nil {
		is = *h.known
	} else if found, err := h.recorded(ctx); err != nil || found != nil {
		if err != nil {
			return is, err
		}
		is = *found
	}
	is.Epoch = max(is.Epoch+1, atLeast)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: membership.HubConfigMap},
		Data:       map[string]string{membership.HubIDKey: is.ID, membership.HubEpochKey: strconv.FormatInt(is.Epoch, 10)},
	}
	if err := h.client.Create(ctx, object); err != nil {
		// Another replica may have created the ConfigMap with another identity: the caller retries and reads it.
		return is, fmt.Errorf("store the hub's identity in ConfigMap %s/%s: %w", h.namespace, membership.HubConfigMap, err)
	}
	h.known = &is
	return is, nil
}

// recorded returns the identity in the Memberships of this hub, so that agents keep their hub if the ConfigMap is
// deleted by mistake; nil: no Membership has one.
func (h *hubIdentity) recorded(ctx context.Context) (*v1alpha1.HubIdentity, error) {
	var list v1alpha1.MembershipList
	if err := h.reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list the Memberships to find the hub's identity: %w", err)
	}
	epochs := map[string]int64{}
	for i := range list.Items {
		if is := list.Items[i].Spec.Hub; is != nil && is.ID != "" {
			epochs[is.ID] = max(epochs[is.ID], is.Epoch)
		}
	}
	switch ids := slices.Sorted(maps.Keys(epochs)); len(ids) {
	case 0:
		return nil, nil
	case 1:
		return &v1alpha1.HubIdentity{ID: ids[0], Epoch: epochs[ids[0]]}, nil
	default:
		return nil, fmt.Errorf("the Memberships have different hub identities (%q and others): create ConfigMap %s/%s with "+
			"the right one under key %s",
			ids[0], h.namespace, membership.HubConfigMap, membership.HubIDKey)
	}
}

func parseIdentity(stored *corev1.ConfigMap) (v1alpha1.HubIdentity, error) {
	is := v1alpha1.HubIdentity{ID: stored.Data[membership.HubIDKey]}
	if is.ID == "" || len(is.ID) > 64 {
		return is, fmt.Errorf("ConfigMap %s/%s: key %s must be the identity of the hub, of 1 to 64 characters",
			stored.Namespace, stored.Name, membership.HubIDKey)
	}
	if text := stored.Data[membership.HubEpochKey]; text != "" {
		epoch, err := strconv.ParseInt(text, 10, 64)
		if err != nil || epoch < 0 {
			return is, fmt.Errorf("ConfigMap %s/%s: key %s must be an integer of at least 0, got %.20q", stored.Namespace,
				stored.Name, membership.HubEpochKey, text)
		}
		is.Epoch = epoch
	}
	return is, nil
}
