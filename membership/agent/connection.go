package agent

import (
	"context"
	"fmt"
	"time"

	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/registration"
)

// connection is the agent's access to its hub as a member: a link for the heartbeat, one for each companion, and one
// for everything else.
type connection struct {
	member    registered
	configure func(*rest.Config)
	keeper    *keeper
	beats     *link
	rest      *link
	lent      []*link
	hub       *hubAPI
	leases    coordinationv1client.LeaseInterface // over the link for everything else
	beater    *heartbeat.Beater

	writes flowcontrol.RateLimiter // of all links but that of the heartbeat; nil: no limit

	stopBeat func() // nil: the heartbeat does not run
}

// connect prepares the connection to the hub without sending a request.
func connect(member registered, claim *registration.ClaimKey, configure func(*rest.Config),
	beats heartbeat.BeaterOptions) (*connection, error) {
	keeper, err := newKeeper(member.Credential.material(), claim)
	if err != nil {
		return nil, err
	}
	if claim != nil {
		member.claim = claim.Fingerprint()
	}
	c := &connection{member: member, configure: configure, keeper: keeper}
	if c.beats, err = c.newLink(); err != nil {
		return nil, err
	}
	if c.rest, err = c.newLink(); err != nil {
		return nil, err
	}
	if c.hub, err = newHubAPI(c.rest, member.Namespace); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.beats.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.QPS, config.RateLimiter = -1, nil // no rate limit for heartbeats
	leases, err := coordinationv1client.NewForConfigAndClient(config, c.beats.client)
	if err != nil {
		return nil, fmt.Errorf("prepare the heartbeat: %w", err)
	}
	probes, err := coordinationv1client.NewForConfigAndClient(rest.CopyConfig(c.rest.config), c.rest.client)
	if err != nil {
		return nil, fmt.Errorf("prepare to probe the namespace on the hub: %w", err)
	}
	c.leases = probes.Leases(member.Namespace)
	c.beater = heartbeat.NewBeater(leases.Leases(member.Namespace), beats)
	return c, nil
}

func (c *connection) newLink() (*link, error) {
	return newLink(hubConfig(c.member.Server, c.member.CA, c.configure), c.keeper)
}

// limitWrites limits the writes of all links except that of the heartbeat, together.
func (c *connection) limitWrites(limit flowcontrol.RateLimiter) {
	c.writes, c.rest.writes = limit, limit
}

// companionConfig returns a config for one companion, with a separate link that works until closeLent is called.
func (c *connection) companionConfig() (*rest.Config, error) {
	l, err := c.newLink()
	if err != nil {
		return nil, err
	}
	l.writes = c.writes
	c.lent = append(c.lent, l)
	return l.clientConfig(), nil
}

// closeLent closes all links of companions.
func (c *connection) closeLent() {
	for _, l := range c.lent {
		l.close()
	}
	c.lent = nil
}

// swap replaces the credential without a restart. A token is part of each request; a certificate belongs to a
// connection, so connections with the old certificate are closed.
func (c *connection) swap(next credential, claim *registration.ClaimKey) error {
	if err := c.keeper.keep(next.material(), claim); err != nil {
		return err
	}
	c.member.Credential = next
	if len(next.Certificate) > 0 {
		c.beats.reset()
		c.rest.reset()
		for _, l := range c.lent {
			l.reset()
		}
	}
	return nil
}

// move replaces the address of the hub, with the same credential and without a restart.
func (c *connection) move(server string, ca []byte) error {
	links := append([]*link{c.beats, c.rest}, c.lent...)
	routes := make([]*route, len(links))
	for i := range links {
		var err error
		if routes[i], err = newRoute(hubConfig(server, ca, c.configure), c.keeper); err != nil {
			return err
		}
	}
	c.member.Server, c.member.CA = server, ca
	for i, l := range links {
		l.take(routes[i])
	}
	return nil
}

func (c *connection) beating() bool { return c.stopBeat != nil }

// startBeat runs the heartbeat in a goroutine until stopBeat is called or the context ends.
func (c *connection) startBeat(ctx context.Context, period time.Duration) {
	if c.beating() {
		return
	}
	c.beater.SetPeriod(period)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.beater.Run(ctx) // the only error is that of a second call
	}()
	c.stopBeat = func() {
		cancel()
		<-done
		c.stopBeat = nil
	}
}

// close ends the heartbeat and closes all connections.
func (c *connection) close() {
	if c.beating() {
		c.stopBeat()
	}
	c.closeLent()
	c.beats.close()
	c.rest.close()
}
