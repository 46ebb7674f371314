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

// recordVersion is that of the record's form. An agent takes none that is newer.
const recordVersion = 1

// record is what an agent remembers over restarts. It is a value: what its pointers lead to is replaced as a
// whole and never changed.
type record struct {
	Version   int    `json:"version"`
	ClusterID string `json:"clusterID"`
	// Name that was asked for.
	Name string `json:"name"`
	// ClaimKey as registration.ClaimKey marshals it.
	ClaimKey []byte                `json:"claimKey"`
	Request  *doorRequest          `json:"request,omitempty"`
	Member   *registered           `json:"member,omitempty"`
	Renewal  *renewalRequest       `json:"renewal,omitempty"`
	Leave    *v1alpha1.LeavePolicy `json:"leave,omitempty"`

	// Deregistered is not the field "forgotten" of earlier versions, which they set without a proof that a user wanted it.
	Deregistered bool `json:"deregistered,omitempty"`
	Kept         bool `json:"kept,omitempty"`
	Out          bool `json:"out,omitempty"`

	// Hub is what the agent knows of the state of its hub; nil: nothing yet.
	Hub *hubState `json:"hub,omitempty"`
	// Move is the last move to another hub that an administrator asked for; nil: there was none.
	Move *moveRequest `json:"move,omitempty"`

	// Turn counts how often the agent went from one of several hubs to another; it is at the one whose record has the highest.
	Turn int `json:"turn,omitempty"`
	// Stay is true when it is not to go from there back to the first of them by itself.
	Stay bool `json:"stay,omitempty"`
}

// hubState is how far the hub was when the agent last wrote its record.
type hubState struct {
	// Epoch is the highest that the Membership has shown.
	Epoch int64 `json:"epoch,omitempty"`
	// Revision is the highest resource version of the hub that the agent has seen.
	Revision string `json:"revision,omitempty"`
	// Required is the epoch that the agent waits for before it deletes anything on the member; zero: it waits for none.
	Required int64 `json:"required,omitempty"`
}

// moveRequest is an administrator's request to make the member one of another hub, from the field moveFrom of a join.yaml.
type moveRequest struct {
	From        string    `json:"from"`
	To          string    `json:"to"`
	RequestedAt time.Time `json:"requestedAt"`
}

// doorRequest is what the agent asks for at the door, and what it needs to open the answer.
type doorRequest struct {
	MemberUID  types.UID                  `json:"memberUID,omitempty"`
	Labels     map[string]string          `json:"labels,omitempty"`
	Credential v1alpha1.CredentialRequest `json:"credential"`
	Private    []byte                     `json:"private,omitempty"`
	MadeAt     time.Time                  `json:"madeAt"`
}

// registered is what the door has answered.
type registered struct {
	Name       string     `json:"name"`
	UID        types.UID  `json:"uid"`
	Namespace  string     `json:"namespace"`
	Server     string     `json:"server"`
	CA         []byte     `json:"ca"`
	Credential credential `json:"credential"`
	// HubID is the identity of the hub; empty: it has not told it yet.
	HubID string `json:"hubID,omitempty"`

	claim string // of the agent, where it is connected
}

// credential is what the agent authenticates by. Its times are by the agent's clock, which may be wrong, while the
// lifetime is the hub's word: the difference of two times by the hub's clock.
type credential struct {
	Certificate []byte        `json:"certificate,omitempty"`
	Token       string        `json:"token,omitempty"`
	Since       time.Time     `json:"since"`
	Lifetime    time.Duration `json:"lifetime,omitempty"` // 0: it does not end
}

// renewalRequest is the request for the next credential.
type renewalRequest struct {
	ID         string                     `json:"id"`
	Credential v1alpha1.CredentialRequest `json:"credential"`
	Signature  []byte                     `json:"signature"`
	Private    []byte                     `json:"private,omitempty"`
	MadeAt     time.Time                  `json:"madeAt"`
}

func parseRecord(data []byte) (record, error) {
	var r record
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%w: it is not JSON of the right form", errRecord) // the parser's words may quote it
	}
	if r.Version != recordVersion {
		return r, fmt.Errorf("%w: it is of version %d, and this agent knows version %d", errRecord, r.Version, recordVersion)
	}
	return r, nil
}

func (r record) marshal() ([]byte, error) {
	r.Version = recordVersion
	return json.Marshal(r)
}

// String and Format keep secrets out of everything that is printed; some loggers look for the one alone.
func (r record) String() string { return "record of " + r.member().Name }

// Format is String, whatever the verb.
func (r record) Format(state fmt.State, _ rune) { fmt.Fprint(state, r.String()) }

func (r record) flags() lifecycle.Record {
	return lifecycle.Record{
		Claim: r.Request != nil, Registered: r.Member != nil,
		Deregistered: r.Deregistered, Kept: r.Kept, Out: r.Out,
	}
}

// member is whom the agent speaks for, as its cleaners know it.
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

// hubID is the identity of the hub that the agent is registered with; empty: it is not, or the hub has not told it.
func (r record) hubID() string {
	if r.Member == nil {
		return ""
	}
	return r.Member.HubID
}

// moves reports whether the bootstrap credential asks to move the member from its hub to the credential's.
func (r record) moves(bootstrap *registration.Bootstrap) bool {
	return r.foreign(bootstrap) && bootstrap.MoveFrom == r.hubID()
}

// strange reports whether the bootstrap credential is that of a hub which the agent is not a member of, and no move there
// was asked for.
func (r record) strange(bootstrap *registration.Bootstrap) bool {
	return r.foreign(bootstrap) && !r.moves(bootstrap)
}

func (r record) foreign(bootstrap *registration.Bootstrap) bool {
	return r.hubID() != "" && bootstrap != nil && bootstrap.HubID != "" && bootstrap.HubID != r.hubID()
}

// isOf reports whether the record is that of this member, whatever its credential and wherever its hub is.
func (r record) isOf(member registered) bool {
	m := r.Member
	return m != nil && m.UID == member.UID && m.Name == member.Name && m.Namespace == member.Namespace
}

// at reports whether that is where the member's hub is.
func (m *registered) at(server string, ca []byte) bool {
	return m.Server == server && bytes.Equal(m.CA, ca)
}

// leavePolicy is the one that the API server would put in.
func leavePolicy(known *v1alpha1.LeavePolicy) v1alpha1.LeavePolicy {
	if known != nil {
		return *known
	}
	return v1alpha1.LeavePolicy{Resources: v1alpha1.DeleteResources, DeadlineSeconds: 900}
}

// issued is the credential of material as the hub has issued it. It began no earlier than since, by the agent's clock:
// the last time that the agent knows it was not there.
func issued(material registration.Material, answer v1alpha1.Credential, since, now time.Time) credential {
	c := credential{Certificate: material.Certificate, Token: material.Token, Since: since}
	switch {
	case answer.ExpirationTime == nil:
		return c
	case answer.IssuedAt != nil:
		c.Lifetime = answer.ExpirationTime.Sub(answer.IssuedAt.Time)
	default:
		c.Lifetime = answer.ExpirationTime.Sub(now) // there is nothing better
	}
	if c.Lifetime <= 0 {
		c.Lifetime = unknownLife
	}
	return c
}

// unknownLife is what a credential is taken to live for that does end, and whose times make no sense: by this agent's
// clock, where the issuer does not say when it was issued, or by themselves.
const unknownLife = 10 * time.Minute

func (c credential) material() registration.Material {
	return registration.Material{Certificate: c.Certificate, Token: c.Token}
}

func (c credential) same(material registration.Material) bool {
	return c.Token == material.Token && string(c.Certificate) == string(material.Certificate)
}

// expires is when the credential ends by the agent's clock, zero if never.
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

// renewAt is when 60 to 75 % of the credential's life are over, where in between depends on the claim, so that
// members that joined together do not renew together. Zero: never.
func (c credential) renewAt(claim string) time.Time {
	if c.Lifetime == 0 {
		return time.Time{}
	}
	hash := fnv.New32a()
	hash.Write([]byte(claim))
	part := 0.60 + 0.15*float64(hash.Sum32())/(1<<32)
	return c.Since.Add(time.Duration(part * float64(c.Lifetime)))
}

// due returns at, or now if that has come by either of a machine's two clocks: the one that goes on evenly stands still
// while the machine is suspended, and the other one can be set.
func due(at, now time.Time) time.Time {
	if !at.IsZero() && !now.Round(0).Before(at.Round(0)) {
		return now
	}
	return at
}
