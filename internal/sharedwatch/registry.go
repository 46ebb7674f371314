package sharedwatch

import "slices"

// Users are the users of something shared, and whether each has read its current state. A user that has not read it
// does not have to be notified of a change: it will read the changed state.
type Users[U comparable] map[U]bool

// Read records that a user has read the current state. It has no effect on others than the users.
func (u Users[U]) Read(user U) {
	if _, uses := u[user]; uses {
		u[user] = true
	}
}

// Readers returns the users that have read the current state.
func (u Users[U]) Readers() []U {
	readers := make([]U, 0, len(u))
	for user, read := range u {
		if read {
			readers = append(readers, user)
		}
	}
	return readers
}

// Outdated returns the users that have read the current state, once until they read again.
func (u Users[U]) Outdated() []U {
	readers := u.Readers()
	for _, user := range readers {
		u[user] = false
	}
	return readers
}

// Shared is what users share, such as a watch. The methods are called with the lock of the registry's owner.
type Shared[U comparable] interface {
	// Users returns the users, which the registry changes.
	Users() Users[U]
	// Close is called when the last user does not want it any more.
	Close()
}

// Registry contains what users share by key. The zero value is empty. The caller protects it with a lock.
type Registry[U, K comparable, V Shared[U]] struct {
	all  map[K]V
	keys map[U][]K
}

// Want replaces what a user wants. What no user wanted before begins, and what no user wants any more is closed.
func (r *Registry[U, K, V]) Want(user U, keys []K, begin func(K) V) {
	if r.all == nil {
		r.all, r.keys = map[K]V{}, map[U][]K{}
	}
	for _, key := range keys {
		value, exists := r.all[key]
		if !exists {
			value = begin(key)
			r.all[key] = value
		}
		if _, uses := value.Users()[user]; !uses {
			value.Users()[user] = false
		}
	}
	for _, key := range r.keys[user] {
		if slices.Contains(keys, key) {
			continue
		}
		value := r.all[key]
		delete(value.Users(), user)
		if len(value.Users()) == 0 {
			delete(r.all, key)
			value.Close()
		}
	}
	if r.keys[user] = keys; len(keys) == 0 {
		delete(r.keys, user)
	}
}

// Wanted returns what a user wants.
func (r *Registry[U, K, V]) Wanted(user U) []V {
	values := make([]V, 0, len(r.keys[user]))
	for _, key := range r.keys[user] {
		values = append(values, r.all[key])
	}
	return values
}

// Get returns what is shared by a key, and whether a user wants it.
func (r *Registry[U, K, V]) Get(key K) (V, bool) {
	value, exists := r.all[key]
	return value, exists
}

// All returns everything that a user wants, by key. The map must not be modified.
func (r *Registry[U, K, V]) All() map[K]V { return r.all }
