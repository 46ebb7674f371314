// Package pool provides connections that can be closed all at once, including those with active requests and those that
// are being opened:
//
//	p := pool.New(nil)
//	p.Use(&http.Transport{TLSClientConfig: tlsConfig})
//	client := &http.Client{Transport: p}
//	...
//	p.Close()
//
// This permits replacing a credential or an address of existing clients and watches: the previous pool is closed, and
// the next request uses another one. A closed pool is not used again, because its transport detects closed connections
// with a delay and would reuse them until then.
package pool
