// Package pool has connections that can be closed all at once, while requests are on their way over them and while others are
// being opened:
//
//	p := pool.New(nil)
//	p.Use(&http.Transport{TLSClientConfig: tlsConfig})
//	client := &http.Client{Transport: p}
//	...
//	p.Close()
//
// That is how a credential or an address is changed under clients and watches: the pool of before is closed, and the next request goes by
// another one. A pool that was closed is not used again, since its transport takes a moment to see that its connections are closed and hands them out until
// then.
package pool
