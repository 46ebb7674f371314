package localplane

import (
	"context"
	"errors"
	"fmt"
)

// KillAPIServer ends the API server with SIGKILL and returns when the process has ended. Its connections are reset, and
// new connections are refused. Its data remains in etcd. KillAPIServer returns an error if the API server is not
// running.
func (p *Plane) KillAPIServer() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.running.apiServer == nil {
		return fmt.Errorf("kill the API server of plane %s: it is not running", p.opts.Name)
	}
	process := p.running.apiServer
	p.running.apiServer = nil
	if err := process.ended(); err != nil {
		return fmt.Errorf("kill the API server of plane %s: %w", p.opts.Name, err)
	}
	process.kill()
	return nil
}

// StartAPIServer starts the API server again after KillAPIServer, on the same address with the same data and
// credentials, and waits until it is ready. The plane's controllers reconnect at their next retry, as in any cluster:
// soon after a short outage, and about 40 seconds after an outage of 40 seconds.
//
// StartAPIServer returns an error if the API server is running. After any other error the API server is not running,
// and the caller may call StartAPIServer again.
func (p *Plane) StartAPIServer(ctx context.Context) error {
	if err := p.startAPIServer(ctx); err != nil {
		return fmt.Errorf("start the API server of plane %s: %w", p.opts.Name, err)
	}
	return nil
}

func (p *Plane) startAPIServer(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return errors.New("the plane is stopped")
	case p.running.apiServer != nil:
		return errors.New("the plane is running")
	case p.running.etcd == nil:
		return fmt.Errorf("%s is not running", etcdName)
	}
	ctx, cancel := p.untilStop(ctx)
	defer cancel()
	client, err := newPlaneClient(p.admin)
	if err != nil {
		return err
	}
	defer client.close()
	if p.running.apiServer, err = p.run(apiServerName, p.apiServerArgs()); err != nil {
		return err
	}
	if err := p.waitForAPIServer(ctx, client); err != nil {
		kill(&p.running.apiServer)
		return err
	}
	return nil
}

// untilStop returns a context that ends when ctx ends or when Stop is called.
func (p *Plane) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unregister := context.AfterFunc(p.stopping, func() { cancel(errors.New("the plane is being stopped")) })
	return ctx, func() {
		unregister()
		cancel(nil)
	}
}
