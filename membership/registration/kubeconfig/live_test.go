package kubeconfig

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
)

// member is a server that reports the user and the address of each request.
func member(t *testing.T, name string) (server *httptest.Server, ca []byte) {
	t.Helper()
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, name+" "+r.RequestURI+" "+r.Header.Get("Authorization")+"\n")
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are closed during requests
	// The server has another certificate, so that its CA must be verified.
	ca, pair := certificates(t)
	own, err := tls.X509KeyPair(pair[0], pair[1])
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, ca
}

// certificates returns an authority, and a certificate of it with its key.
func certificates(t testing.TB) (ca []byte, pair [2][]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return ca, [2][]byte{ca, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

func access(t *testing.T, data map[string]string) *Access {
	t.Helper()
	bytes := map[string][]byte{}
	for key, value := range data {
		bytes[key] = []byte(value)
	}
	parsed, err := Parse(bytes, "", Options{})
	require.NoError(t, err)
	return parsed
}

func clientOf(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return client
}

func open(t *testing.T, client *http.Client, url string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	require.NoError(t, err)
	return response
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	response := open(t, client, url)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 2, response.ProtoMajor)
	return string(body)
}

func TestLive_LendAndReplace(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	first, firstCA := member(t, "first")
	second, secondCA := member(t, "second")
	defer second.Close() // before the check for leaks
	defer first.Close()

	live, err := NewLive(access(t, map[string]string{ServerKey: first.URL, CAKey: string(firstCA), TokenKey: "one"}))
	require.NoError(t, err)
	defer live.Close()
	config, takeBack, err := live.Lend()
	require.NoError(t, err)
	other, _, err := live.Lend()
	require.NoError(t, err)
	require.Equal(t, first.URL, config.Host)
	client, otherClient := clientOf(t, config), clientOf(t, other)
	url := config.Host + "/api/v1/services/http:x:80%2Fy?limit=1"
	require.Equal(t, "first /api/v1/services/http:x:80%2Fy?limit=1 Bearer one\n", get(t, client, url))
	watch := open(t, client, config.Host+"/api?watch")
	defer watch.Body.Close()
	lines := bufio.NewReader(watch.Body)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)

	// Another address with a path, another authority, another credential.
	require.NoError(t, live.Replace(access(t,
		map[string]string{ServerKey: second.URL + "/k8s/c-1/", CAKey: string(secondCA), TokenKey: "two"})))
	_, err = lines.ReadString('\n')
	require.Error(t, err, "a watch over the previous connection ends")
	require.Equal(t, "second /k8s/c-1/api/v1/services/http:x:80%2Fy?limit=1 Bearer two\n", get(t, client, url))
	require.Contains(t, get(t, otherClient, url), "second /k8s/c-1/api", "all lent configs use the new access")

	// An equal Access closes no connection.
	watch = open(t, client, config.Host+"/api?watch")
	defer watch.Body.Close()
	require.NoError(t, live.Replace(access(t,
		map[string]string{ServerKey: second.URL + "/k8s/c-1/", CAKey: string(secondCA), TokenKey: "two"})))
	lines = bufio.NewReader(watch.Body)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := lines.ReadString('\n')
		ended <- err
	}()
	require.Contains(t, get(t, client, url), "Bearer two")
	select {
	case err := <-ended:
		t.Errorf("a watch ended without a change: %v", err)
	default:
	}

	takeBack()
	require.Error(t, <-ended, "a watch ends with its config")
	_, err = client.Get(url) //nolint:bodyclose // the request fails
	require.ErrorIs(t, err, ErrEnded)
	require.Contains(t, get(t, otherClient, url), "Bearer two", "other configs are not affected")

	live.Close()
	_, err = otherClient.Get(url) //nolint:bodyclose // the request fails
	require.ErrorIs(t, err, ErrEnded)
	_, _, err = live.Lend()
	require.ErrorIs(t, err, ErrEnded)
	require.ErrorIs(t, live.Replace(access(t, map[string]string{ServerKey: first.URL, TokenKey: "one"})), ErrEnded)
	live.Close()
	takeBack()
}

// TestLive_FailedReplace checks that an Access whose connection cannot be prepared changes nothing.
func TestLive_FailedReplace(t *testing.T) {
	server, ca := member(t, "x")
	live, err := NewLive(access(t, map[string]string{ServerKey: server.URL, CAKey: string(ca), TokenKey: "one"}))
	require.NoError(t, err)
	defer live.Close()
	config, _, err := live.Lend()
	require.NoError(t, err)
	missing, err := Parse(map[string][]byte{DefaultKey: kubeconfig(t, object{"certificate-authority": "/does/not/exist"},
		nil)}, "", Options{AllowFiles: true})
	require.NoError(t, err)
	require.Error(t, live.Replace(missing))
	require.Equal(t, server.URL, live.Access().Server())
	require.Contains(t, get(t, clientOf(t, config), config.Host+"/"), "Bearer one")
	_, err = NewLive(missing)
	require.Error(t, err)
}

// TestLive_Rotation checks that each request during a replacement uses exactly one of the credentials.
func TestLive_Rotation(t *testing.T) {
	server, ca := member(t, "x")
	of := func(token string) *Access {
		return access(t, map[string]string{ServerKey: server.URL, CAKey: string(ca), TokenKey: token})
	}
	live, err := NewLive(of("one"))
	require.NoError(t, err)
	defer live.Close()
	config, _, err := live.Lend()
	require.NoError(t, err)
	client := clientOf(t, config)
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 25 {
				response, err := client.Get(config.Host + "/")
				if err != nil {
					continue // the connection was closed during the request, which clients retry
				}
				body, err := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err == nil && string(body) != "x / Bearer one\n" && string(body) != "x / Bearer two\n" {
					t.Errorf("got %q", body)
				}
			}
		})
	}
	for i := range 20 {
		if err := live.Replace(of([]string{"one", "two"}[i%2])); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	require.NoError(t, live.Replace(of("last")))
	require.Equal(t, "x / Bearer last\n", get(t, client, config.Host+"/"))
}

// TestLive_Proxy checks that the proxy receives CONNECT with its headers.
func TestLive_Proxy(t *testing.T) {
	server, ca := member(t, "x")
	requests := make(chan *http.Request, 1)
	proxy := testkit.ConnectProxy(t, func(r *http.Request) string {
		requests <- r
		return r.Host
	})
	live, err := NewLive(access(t, map[string]string{
		ServerKey: server.URL, CAKey: string(ca), TokenKey: "one", ProxyURLKey: proxy, ProxyHeadersKey: "X-Target: east",
	}))
	require.NoError(t, err)
	defer live.Close()
	config, _, err := live.Lend()
	require.NoError(t, err)
	require.Equal(t, "x / Bearer one\n", get(t, clientOf(t, config), config.Host+"/"))
	connect := <-requests
	require.Equal(t, http.MethodConnect, connect.Method)
	require.Equal(t, "east", connect.Header.Get("X-Target"))
	require.Empty(t, connect.Header.Get("Authorization"), "the proxy must not receive the credential")
}
