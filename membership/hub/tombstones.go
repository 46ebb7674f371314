package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// tombstones stores the records of members that left on request: a ConfigMap each, in the registration namespace. They
// are not cached. Its methods may be called concurrently.
type tombstones struct {
	client    client.Client
	reader    client.Reader // without a cache
	namespace string
	ttl       time.Duration
	limit     int
	clock     clock.PassiveClock

	mu      sync.Mutex
	written int       // since the last expiry
	expired time.Time // when expire was last called
}

// expiryInterval is the minimum interval between two lists of all tombstones, unless many were written.
const expiryInterval = time.Hour

func hashed(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:40]
}

// write records that a member has left. It is idempotent.
func (s *tombstones) write(ctx context.Context, t lifecycle.Tombstone) error {
	object := tombstoneObject(s.namespace, t)
	if err := s.client.Create(ctx, object); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("record in ConfigMap %s/%s that member %s left: %w", object.Namespace, object.Name, t.MemberName,
			err)
	}
	s.mu.Lock()
	s.written++
	due := s.written*10 >= s.limit || s.clock.Since(s.expired) >= expiryInterval
	s.mu.Unlock()
	if due {
		return s.expire(ctx)
	}
	return nil
}

// of returns the tombstones of a cluster ID that have not expired.
func (s *tombstones) of(ctx context.Context, clusterID string) ([]lifecycle.Tombstone, error) {
	var list corev1.ConfigMapList
	err := s.reader.List(ctx, &list, client.InNamespace(s.namespace),
		client.MatchingLabels{membership.TombstoneLabel: hashed(clusterID)})
	if err != nil {
		return nil, fmt.Errorf("list the tombstones of cluster ID %s: %w", clusterID, err)
	}
	var out []lifecycle.Tombstone
	for i := range list.Items {
		t, ok := parseTombstone(&list.Items[i])
		if ok && t.ClusterID == clusterID && s.clock.Since(t.Time) < s.ttl {
			out = append(out, t)
		}
	}
	return out, nil
}

// expire deletes tombstones that are older than the TTL, and the oldest beyond the limit.
func (s *tombstones) expire(ctx context.Context) error {
	s.mu.Lock()
	s.written, s.expired = 0, s.clock.Now()
	s.mu.Unlock()
	var list corev1.ConfigMapList
	if err := s.reader.List(ctx, &list, client.InNamespace(s.namespace),
		client.HasLabels{membership.TombstoneLabel}); err != nil {
		return fmt.Errorf("list the tombstones of members in namespace %s: %w", s.namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var errs []error
	for i := range list.Items {
		object := &list.Items[i]
		t, ok := parseTombstone(object)
		if i < s.limit && (!ok || s.clock.Since(t.Time) < s.ttl) {
			continue
		}
		err := s.client.Delete(ctx, object, precondition.Unchanged(object))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete the expired tombstone %s/%s: %w", object.Namespace, object.Name, err))
		}
	}
	return errors.Join(errs...)
}

// LastRemoval returns when the hub last recorded that a MemberCluster of this name was deleted on request, and the
// resourceVersion of the record. The time is zero if there is no record, or if a MemberCluster of this name exists. It
// needs get on MemberClusters and list on ConfigMaps in the registration namespace; the reader must not be a cache.
func LastRemoval(ctx context.Context, reader client.Reader, registrationNamespace, member string) (time.Time, string,
	error) {
	cluster, err := found(ctx, reader, client.ObjectKey{Name: member}, &v1alpha1.MemberCluster{})
	if err != nil || cluster != nil {
		return time.Time{}, "", err
	}
	var list corev1.ConfigMapList
	if err := reader.List(ctx, &list, client.InNamespace(registrationNamespace),
		client.HasLabels{membership.TombstoneLabel}); err != nil {
		return time.Time{}, "", fmt.Errorf("list the tombstones of members in namespace %s: %w", registrationNamespace, err)
	}
	var last time.Time
	var version string
	for i := range list.Items {
		t, ok := parseTombstone(&list.Items[i])
		if ok && !t.Kept && t.MemberName == member && t.Time.After(last) {
			last, version = t.Time, list.Items[i].ResourceVersion
		}
	}
	return last, version, nil
}

func tombstoneObject(namespace string, t lifecycle.Tombstone) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "left-" + hashed(string(t.MemberUID), t.Claim),
			Labels: map[string]string{membership.TombstoneLabel: hashed(t.ClusterID)},
		},
		Data: map[string]string{
			"memberUID": string(t.MemberUID), "memberName": t.MemberName, "clusterID": t.ClusterID, "claim": t.Claim,
			"decided": strconv.FormatBool(t.Decided), "kept": strconv.FormatBool(t.Kept),
			"resources": string(t.Resources), "time": t.Time.UTC().Format(time.RFC3339),
		},
	}
}

// parseTombstone parses the record of a tombstone. It returns false for an object that is not a tombstone of this
// version.
func parseTombstone(object *corev1.ConfigMap) (lifecycle.Tombstone, bool) {
	at, err := time.Parse(time.RFC3339, object.Data["time"])
	if err != nil || object.Data["memberUID"] == "" {
		return lifecycle.Tombstone{}, false
	}
	return lifecycle.Tombstone{
		MemberUID: types.UID(object.Data["memberUID"]), MemberName: object.Data["memberName"],
		ClusterID: object.Data["clusterID"], Claim: object.Data["claim"],
		Decided: object.Data["decided"] == "true", Kept: object.Data["kept"] == "true",
		Resources: v1alpha1.ResourcePolicy(object.Data["resources"]), Time: at,
	}, true
}
