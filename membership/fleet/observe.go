package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observed is the observed state of a member's objects.
type observed struct {
	cluster *v1alpha1.MemberCluster
	secret  secretSeen
}

// secretSeen is the observed state of a Secret.
type secretSeen struct {
	from    string             // its source: reference, UID and resourceVersion
	access  *kubeconfig.Access // nil: see trouble
	problem finding
	garbled bool // the Secret exists and is invalid
}

// sameWay reports whether all observed state that affects the connections is unchanged. A nil observation means that
// the member is deleted.
func (o *observed) sameWay(other *observed) bool {
	switch {
	case o == nil || other == nil:
		return o == other
	case o.cluster.UID != other.cluster.UID || identityOf(o.cluster) != identityOf(other.cluster):
		return false
	case o.secret.access == nil || other.secret.access == nil:
		return o.secret == other.secret
	}
	return o.secret.access.Revision() == other.secret.access.Revision()
}

// Reconcile passes the state of a member's objects to its goroutine. It reads a Secret from the API server only if the
// Secret has changed.
func (f *Fleet) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o := &observed{cluster: &v1alpha1.MemberCluster{}}
	if err := f.cache.Get(ctx, request.NamespacedName, o.cluster); apierrors.IsNotFound(err) {
		f.secrets.refer(request.Name, types.NamespacedName{})
		f.goroutines.notify(request.Name, nil)
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	// Record the reference before the Secret is read, so that a later creation is observed.
	f.secrets.refer(request.Name, f.secretOf(o.cluster))
	var err error
	if o.secret, err = f.readSecret(ctx, o.cluster); err != nil {
		return reconcile.Result{}, err
	}
	f.goroutines.notify(request.Name, o)
	return reconcile.Result{}, nil
}

func (f *Fleet) readSecret(ctx context.Context, cluster *v1alpha1.MemberCluster) (secretSeen, error) {
	ref := cluster.Spec.KubeConfigSecretRef
	if ref == nil {
		return secretSeen{}, nil
	}
	key := f.secretOf(cluster)
	if !slices.Contains(f.options.Namespaces, key.Namespace) {
		return problemOf(v1alpha1.ReasonKubeConfigInvalid, "spec.kubeConfigSecretRef.namespace: the hub reads "+
			"Secrets only in %s.", strings.Join(f.options.Namespaces, ", ")), nil
	}
	missing := problemOf(v1alpha1.ReasonKubeConfigMissing, "spec.kubeConfigSecretRef: Secret %s does not exist.", key)
	metadata := secretMetadata()
	if err := f.cache.Get(ctx, key, metadata); apierrors.IsNotFound(err) {
		return missing, nil
	} else if err != nil {
		return secretSeen{}, err
	}
	from := func(object client.Object) string {
		return fmt.Sprintf("%s %s %s %s", key, ref.Key, object.GetUID(), object.GetResourceVersion())
	}
	if seen, there := f.goroutines.seenSecret(cluster.Name); there && seen.from == from(metadata) {
		return seen, nil
	}
	var secret corev1.Secret
	if err := f.client.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
		return missing, nil
	} else if err != nil {
		return secretSeen{}, fmt.Errorf("read Secret %s of member %s: %w", key, cluster.Name, err)
	}
	access, err := kubeconfig.Parse(secret.Data, ref.Key, f.options.Kubeconfig)
	seen := secretSeen{access: access}
	if err != nil {
		seen = problemOf(v1alpha1.ReasonKubeConfigInvalid, "Secret %s: %v.", key, err)
		seen.garbled = true
	}
	seen.from = from(&secret)
	return seen, nil
}

func problemOf(reason, message string, args ...any) secretSeen {
	return secretSeen{problem: finding{reason, fmt.Sprintf(message, args...)}}
}

// secretOf returns the name of a member's Secret. Zero: the member has none.
func (f *Fleet) secretOf(cluster *v1alpha1.MemberCluster) types.NamespacedName {
	ref := cluster.Spec.KubeConfigSecretRef
	if ref == nil {
		return types.NamespacedName{}
	}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = f.options.Namespaces[0]
	}
	return key
}

func secretMetadata() *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return metadata
}

// secretIndex maps Secrets to the members that reference them. The zero value is ready for use.
type secretIndex struct {
	mu       sync.Mutex
	byMember map[string]types.NamespacedName
	bySecret map[types.NamespacedName]map[string]struct{}
}

// membersOf returns the members that reference a Secret.
func (s *secretIndex) membersOf(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var requests []reconcile.Request
	for member := range s.bySecret[client.ObjectKeyFromObject(secret)] {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: member}})
	}
	return requests
}

// refer records the Secret that a member references. Zero: none.
func (s *secretIndex) refer(member string, secret types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, has := s.byMember[member]; has {
		delete(s.byMember, member)
		if delete(s.bySecret[before], member); len(s.bySecret[before]) == 0 {
			delete(s.bySecret, before)
		}
	}
	if secret == (types.NamespacedName{}) {
		return
	}
	if s.byMember == nil {
		s.byMember, s.bySecret = map[string]types.NamespacedName{}, map[types.NamespacedName]map[string]struct{}{}
	}
	s.byMember[member] = secret
	if s.bySecret[secret] == nil {
		s.bySecret[secret] = map[string]struct{}{}
	}
	s.bySecret[secret][member] = struct{}{}
}
