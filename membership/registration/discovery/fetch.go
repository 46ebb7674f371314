package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

const (
	// etcd stores at most 1.5 MiB in one object.
	maxBody = 2 << 20
	// Limits the response of a server that is no hub.
	maxHeader = 64 << 10
)

// fetch gets cluster-info as an anonymous user. Without roots the server is not verified.
func (o *Options) fetch(ctx context.Context, roots []*x509.Certificate) (*clusterInfo, error) {
	target, err := url.JoinPath(o.Server, "api/v1/namespaces", metav1.NamespacePublic, "configmaps",
		bootstrapapi.ConfigMapClusterInfo)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	client := o.client(roots)
	response, err := client.Do(request)
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := statusError(response.StatusCode); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return nil, failure(ctx, err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("%w: the response exceeds the size limit of a ConfigMap", ErrNotAHub)
	}
	return parse(body)
}

func (o *Options) client(roots []*x509.Certificate) *http.Client {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            o.Dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true, // leaves no connection open
	}
	if o.Proxy != nil {
		transport.Proxy = o.Proxy
	}
	if roots == nil {
		transport.TLSClientConfig.InsecureSkipVerify = true // no secret is sent, and the response must be signed and pinned
	} else {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		for _, root := range roots {
			transport.TLSClientConfig.RootCAs.AddCert(root)
		}
	}
	return &http.Client{
		Transport: transport,
		// Redirects are not followed: the administrator sets the address of the hub, not the server that responds.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func statusError(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNotFound:
		return fmt.Errorf("%w: the hub has no ConfigMap kube-public/cluster-info: ask its administrator to publish it, or "+
			"use join.yaml", ErrNotAHub)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: the hub does not allow reading kube-public/cluster-info: ask its administrator to publish "+
			"it, or use join.yaml", ErrNotAHub)
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: the hub responds with status %d", ErrUnreachable, status)
	default:
		return fmt.Errorf("%w: the server at this address responds with status %d", ErrNotAHub, status)
	}
}

// failure converts the error of a request without a response.
func failure(ctx context.Context, err error) error {
	if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
		return fmt.Errorf("%w: %w", ErrUntrusted, wrong.Err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, context.Cause(ctx))
	}
	if outer := new(url.Error); errors.As(err, &outer) {
		err = outer.Err // the caller adds the address
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
