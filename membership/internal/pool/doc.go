// Package pool provides connections that can be closed all at once, including those with active requests and those that
// are being opened:
//
//	p := pool.New(nil)
//	p.Use(&http.Transport{TLSClientConfig: tlsConfig})
//	client := &http.Client{Transport: p}
//	...
//	p.Close()
//
// This replaces a credential or an address below existing clients and watches: the previous pool is closed, and the
// next request uses another one. A closed pool is not used again, because its transport takes a moment to detect closed
// connections and returns them until then.
package pool
