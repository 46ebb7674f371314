package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// recordVersion is the version of the record's format. An agent rejects newer versions.
const recordVersion = 1

// record is the agent's persistent state. It is copied by value: the targets of its pointers are replaced and never
// changed.
//
// Some types are embedded so that their fields stay at the top level of the JSON, where earlier versions stored them.
type record struct {
	Version   int    `json:"version"`
	ClusterID string `json:"clusterID"`
	// Name is the requested name.
	Name string `json:"name"`
	claimKeys
	Request *recordedRequest      `json:"request,omitempty"`
	Member  *registered           `json:"member,omitempty"`
	Renewal *renewalRequest       `json:"renewal,omitempty"`
	Leave   *v1alpha1.LeavePolicy `json:"leave,omitempty"`

	removalProgress

	// Hub is the last known state of the hub; nil: unknown.
	Hub *hubState `json:"hub,omitempty"`
	// Move is the last move to another hub that an administrator requested; nil: none.
	Move *moveRequest `json:"move,omitempty"`

	hubTurn
}

// removalProgress is the progress of the member's removal.
type removalProgress struct {
	// Deregistered is not the field "forgotten" of earlier versions, which set it without proof of a user's request.
	Deregistered bool `json:"deregistered,omitempty"`
	Kept         bool `json:"kept,omitempty"`
	Out          bool `json:"out,omitempty"`
}

// removalBegun reports whether the hub has removed the member, or the member has left.
func (r removalProgress) removalBegun() bool { return r.Deregistered || r.Out }

// hubTurn records the change between several hubs that made the hub of a record the current one.
type hubTurn struct {
	// Turn counts the changes between several hubs. The hub whose record has the highest value is the current one.
	Turn int `json:"turn,omitempty"`
	// Stay is true if the agent must not return to the first hub without an administrator.
	Stay bool `json:"stay,omitempty"`
}

// hubState is the state of the hub when the agent last saved its record.
type hubState struct {
	// Epoch is the highest epoch that the Membership has contained.
	Epoch int64 `json:"epoch,omitempty"`
	// Revision is the highest resource version of the hub that the agent has observed.
	Revision string `json:"revision,omitempty"`
	// Required is the epoch that the agent waits for before it deletes anything on the member; zero: it waits for none.
	Required int64 `json:"required,omitempty"`
	// Restored is the last value of Required: it increases with each restore that the agent observes.
	Restored int64 `json:"restored,omitempty"`
}

// moveRequest is an administrator's request to move the member to another hub, from the field moveFrom of a join.yaml.
type moveRequest struct {
	From        string    `json:"from"`
	To          string    `json:"to"`
	RequestedAt time.Time `json:"requestedAt"`
}

// recordedRequest is the content of the agent's JoinRequest, and the private data to open the answer.
type recordedRequest struct {
	MemberUID  types.UID                  `json:"memberUID,omitempty"`
	Labels     map[string]string          `json:"labels,omitempty"`
	Credential v1alpha1.CredentialRequest `json:"credential"`
	Private    []byte                     `json:"private,omitempty"`
	MadeAt     time.Time                  `json:"madeAt"`
}

// registered is the agent's registration with a hub.
type registered struct {
	Name       string     `json:"name"`
	UID        types.UID  `json:"uid"`
	Namespace  string     `json:"namespace"`
	Server     string     `json:"server"`
	CA         []byte     `json:"ca"`
	Credential credential `json:"credential"`
	// HubID is the identity of the hub; empty: not reported yet.
	HubID string `json:"hubID,omitempty"`

	claim string // of the agent, if it is connected
}

// credential is the agent's credential. Its times are from the agent's clock, which may be wrong. The lifetime is the
// difference of two times of the hub's clock.
type credential struct {
	Certificate []byte        `json:"certificate,omitempty"`
	Key         []byte        `json:"key,omitempty"` // of the certificate; empty: the claim key
	Token       string        `json:"token,omitempty"`
	Since       time.Time     `json:"since"`
	Lifetime    time.Duration `json:"lifetime,omitempty"` // 0: unlimited
}

// claimKeys are the claim keys of the agent.
type claimKeys struct {
	// ClaimKey is the output of registration.ClaimKey.Marshal.
	ClaimKey []byte `json:"claimKey"`
	// Keys are the later claim keys, newest first.
	Keys []laterKey `json:"keys,omitempty"`
}

// laterKey is a key that the agent has replaced its claim key with, or will with its next credential. It is stored
// before it is used. The agent keeps the last ones, because a hub whose store was restored may know only an earlier
// one.
type laterKey struct {
	// Key is the output of registration.ClaimKey.Marshal.
	Key    []byte    `json:"key"`
	MadeAt time.Time `json:"madeAt"`
}

const (
	// keyPeriod is the minimum age of the newest claim key when the agent replaces it. With maxKeys, the agent keeps the
	// keys of at least seven weeks, which is the maximum age of a backup from which the hub can be restored.
	keyPeriod = 7 * 24 * time.Hour
	// maxKeys is the maximum number of later keys, as in the API.
	maxKeys = 8
)

// nextKeys returns the later keys for the next renewal, with a new key if the newest is older than keyPeriod.
func nextKeys(keys []laterKey, now time.Time) ([]laterKey, error) {
	if len(keys) > 0 && now.Sub(keys[0].MadeAt).Abs() < keyPeriod {
		return keys, nil
	}
	key, err := registration.NewClaimKey()
	if err != nil {
		return nil, err
	}
	private, err := key.Marshal()
	if err != nil {
		return nil, err
	}
	next := append([]laterKey{{Key: private, MadeAt: now}}, keys...)
	return next[:min(maxKeys, len(next))], nil
}

// laterKeys parses the later keys, newest first.
func (r claimKeys) laterKeys() ([]*registration.ClaimKey, error) {
	var keys []*registration.ClaimKey
	for i := range r.Keys {
		key, err := registration.ParseClaimKey(r.Keys[i].Key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// renewalRequest is the request for the next credential.
type renewalRequest struct {
	ID         string                     `json:"id"`
	Credential v1alpha1.CredentialRequest `json:"credential"`
	Signature  []byte                     `json:"signature"`
	Keys       []v1alpha1.KeyProof        `json:"keys,omitempty"`
	Private    []byte                     `json:"private,omitempty"`
	MadeAt     time.Time                  `json:"madeAt"`
}

func parseRecord(data []byte) (record, error) {
	var r record
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		// the parser's error may quote the record
		return r, fmt.Errorf("%w: the content is not valid JSON for a record", errRecord)
	}
	if r.Version != recordVersion {
		return r, fmt.Errorf("%w: the record has version %d, and this agent supports version %d", errRecord, r.Version,
			recordVersion)
	}
	return r, nil
}

func (r record) marshal() ([]byte, error) {
	r.Version = recordVersion
	return json.Marshal(r)
}

// String and Format keep secrets out of printed text. Some loggers use only String.
func (r record) String() string { return "record of " + r.member().Name }

// Format prints String for every verb.
func (r record) Format(state fmt.State, _ rune) { fmt.Fprint(state, r.String()) }

func (r record) flags() lifecycle.Record {
	return lifecycle.Record{
		Claim: r.Request != nil, Registered: r.Member != nil,
		Deregistered: r.Deregistered, Kept: r.Kept, Out: r.Out,
	}
}

// member returns the member for the cleaners.
func (r record) member() membership.Member {
	m := membership.Member{Name: r.Name, ClusterID: r.ClusterID, Leave: leavePolicy(r.Leave)}
	if r.Member != nil {
		m.Name, m.UID, m.Namespace = r.Member.Name, r.Member.UID, r.Member.Namespace
	}
	if claim, err := registration.ParseClaimKey(r.ClaimKey); err == nil {
		m.Claim = claim.Fingerprint()
	}
	return m
}

// hubID returns the identity of the agent's hub; empty: the agent is not registered, or the hub has not reported its
// identity.
func (r record) hubID() string {
	if r.Member == nil {
		return ""
	}
	return r.Member.HubID
}

// moves reports whether the bootstrap credential requests to move the member from its current hub to the hub of the
// credential.
func (r record) moves(bootstrap *registration.Bootstrap) bool {
	return r.foreign(bootstrap) && bootstrap.MoveFrom == r.hubID()
}

// strange reports whether the bootstrap credential belongs to another hub than the agent's, without a requested move.
func (r record) strange(bootstrap *registration.Bootstrap) bool {
	return r.foreign(bootstrap) && !r.moves(bootstrap)
}

func (r record) foreign(bootstrap *registration.Bootstrap) bool {
	return r.hubID() != "" && bootstrap != nil && bootstrap.HubID != "" && bootstrap.HubID != r.hubID()
}

// isOf reports whether the record belongs to this member, regardless of its credential and the address of its hub.
func (r record) isOf(member registered) bool {
	m := r.Member
	return m != nil && m.UID == member.UID && m.Name == member.Name && m.Namespace == member.Namespace
}

// at reports whether the hub has this address and certificate authority.
func (m *registered) at(server string, ca []byte) bool {
	return m.Server == server && bytes.Equal(m.CA, ca)
}

// leavePolicy returns the known policy, or the API's default.
func leavePolicy(known *v1alpha1.LeavePolicy) v1alpha1.LeavePolicy {
	if known != nil {
		return *known
	}
	return v1alpha1.LeavePolicy{Resources: v1alpha1.DeleteResources, DeadlineSeconds: 900}
}

// issued returns the credential of the material. Since is the last time, by the agent's clock, at which the credential
// did not exist yet.
func issued(material registration.Material, answer v1alpha1.Credential, since, now time.Time) credential {
	c := credential{Certificate: material.Certificate, Key: material.Key, Token: material.Token, Since: since}
	switch {
	case answer.ExpirationTime == nil:
		return c
	case answer.IssuedAt != nil:
		c.Lifetime = answer.ExpirationTime.Sub(answer.IssuedAt.Time)
	default:
		c.Lifetime = answer.ExpirationTime.Sub(now) // the best estimate
	}
	if c.Lifetime <= 0 {
		c.Lifetime = unknownLife
	}
	return c
}

// unknownLife is the assumed lifetime of a credential that expires, if its times are inconsistent: with the agent's
// clock, if the issuer reports no issue time, or with each other.
const unknownLife = 10 * time.Minute

func (c credential) material() registration.Material {
	return registration.Material{Certificate: c.Certificate, Key: c.Key, Token: c.Token}
}

func (c credential) same(material registration.Material) bool {
	return c.Token == material.Token && string(c.Certificate) == string(material.Certificate)
}

// expires returns the time at which the credential expires by the agent's clock; zero: never.
func (c credential) expires() time.Time {
	if c.Lifetime == 0 {
		return time.Time{}
	}
	return c.Since.Add(c.Lifetime)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// renewAt returns the time at which 60 to 75 % of the credential's lifetime have passed. The exact time depends on the
// claim, so that members that joined together do not renew together. Zero: never.
func (c credential) renewAt(claim string) time.Time {
	if c.Lifetime == 0 {
		return time.Time{}
	}
	hash := fnv.New32a()
	hash.Write([]byte(claim))
	part := 0.60 + 0.15*float64(hash.Sum32())/(1<<32)
	return c.Since.Add(time.Duration(part * float64(c.Lifetime)))
}

// due returns at, or now if at has passed by the monotonic or the wall clock: the monotonic clock stops while the
// machine is suspended, and the wall clock can be set.
func due(at, now time.Time) time.Time {
	if !at.IsZero() && !now.Round(0).Before(at.Round(0)) {
		return now
	}
	return at
}
