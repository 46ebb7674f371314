package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
)

// A Store stores one record over restarts. The record is a secret: its readers can act as the member. An agent calls
// its Store from one goroutine, and loads the record again after each error.
type Store interface {
	// Load returns the record; nil: there is none.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces the record. When it has returned nil, the record survives a crash.
	Save(ctx context.Context, record []byte) error
	// Delete deletes the record. It returns nil if there is none.
	Delete(ctx context.Context) error
}

// recordKey is the key of the record in the Secret of a [SecretStore].
const recordKey = "record"

// SecretStore returns a Store that stores the record in a Secret, which it creates with the first record and deletes
// with the record. It needs the permissions create, get, update and delete on Secrets of that name. A Save fails if
// another client has written the Secret since it was loaded. An agent with a manager also publishes its state in an
// annotation of the Secret.
func SecretStore(secrets corev1client.SecretInterface, name string) Store {
	return &secretStore{secrets: secrets, name: name}
}

type secretStore struct {
	secrets corev1client.SecretInterface
	name    string
	seen    *corev1.Secret   // the last known version; nil: there is none
	state   agentstate.State // to be published beside the record; zero: none
}

func (s *secretStore) Load(ctx context.Context) ([]byte, error) {
	s.seen = nil
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's Secret %s: %w", s.name, err)
	}
	s.seen = secret
	return secret.Data[recordKey], nil
}

func (s *secretStore) Save(ctx context.Context, record []byte) error {
	var err error
	saved := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeOpaque}
	if s.seen == nil {
		saved.Data = map[string][]byte{recordKey: record}
		s.annotate(saved)
		saved, err = s.secrets.Create(ctx, saved, metav1.CreateOptions{})
	} else {
		saved = s.seen.DeepCopy()
		saved.Data = map[string][]byte{recordKey: record}
		s.annotate(saved)
		saved, err = s.secrets.Update(ctx, saved, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the agent's Secret %s: %w", s.name, err)
	}
	s.seen = saved
	return nil
}

func (s *secretStore) Delete(ctx context.Context) error {
	seen := s.seen
	s.seen = nil
	var err error
	if seen == nil {
		seen, err = s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	}
	if err == nil { // another agent may have written the Secret since
		unchanged := &metav1.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion}
		err = s.secrets.Delete(ctx, s.name, metav1.DeleteOptions{Preconditions: unchanged})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the agent's Secret %s: %w", s.name, err)
	}
	return nil
}

var errRecord = errors.New("the agent's record cannot be used: delete the record to start over, and check the member " +
	"on the hub")
