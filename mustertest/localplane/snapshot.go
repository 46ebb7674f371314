package localplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Snapshot is a copy of all data that a plane's API server has stored. It can be restored any number of times, to the
// plane from which it was taken. Its files are in the folder of the plane, and Stop removes them.
type Snapshot struct {
	plane  *Plane
	folder string
}

// Snapshot copies the data of etcd. It pauses etcd during the copy, so clients observe only a delay of some
// milliseconds. The copy contains every write that was acknowledged before the call. Linux and macOS only.
func (p *Plane) Snapshot(ctx context.Context) (*Snapshot, error) {
	snapshot, err := p.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of plane %s: %w", p.opts.Name, err)
	}
	return snapshot, nil
}

func (p *Plane) snapshot(ctx context.Context) (_ *Snapshot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped || p.running.etcd == nil {
		return nil, fmt.Errorf("%s is not running", etcdName)
	}
	folder, err := os.MkdirTemp(p.files.folder, "snapshot-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder) // If this fails, Stop removes the folder.
		}
	}()
	// The files of a paused etcd are those that the next start would find after a kill, and etcd recovers from a kill.
	if err := p.running.etcd.pause(ctx); err != nil {
		return nil, err
	}
	err = copyData(ctx, p.path(etcdFolder), folder)
	if err := errors.Join(err, p.running.etcd.resume()); err != nil {
		return nil, err
	}
	return &Snapshot{plane: p, folder: folder}, nil
}

// Restore resets the plane to the state of a snapshot, as an administrator restores a backup of etcd. All components
// are killed and started again, on the same addresses with the same credentials. Restore returns when the API server is
// ready. Objects that were created after the snapshot do not exist, deleted objects exist again with their old UIDs,
// and connections are reset. The plane's controllers start again with empty caches.
//
// resourceVersions decrease, which the administrator of a real cluster should avoid (etcdutl snapshot restore
// --bump-revision) but may not have avoided. The API server accepts a watch from a resourceVersion that does not exist
// yet, and sends no event until the new resourceVersions exceed it. A list that demands at least such a resourceVersion
// fails with 504 "Too large resource version". A client recovers with a list without a resourceVersion.
//
// After an error the plane is incomplete: call Restore again, or stop the plane.
func (p *Plane) Restore(ctx context.Context, snapshot *Snapshot) error {
	if err := p.restore(ctx, snapshot); err != nil {
		return fmt.Errorf("restore a snapshot of plane %s: %w", p.opts.Name, err)
	}
	return nil
}

func (p *Plane) restore(ctx context.Context, snapshot *Snapshot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return errors.New("the plane is stopped")
	case snapshot.plane != p:
		return fmt.Errorf("the snapshot is of plane %s in %s", snapshot.plane.opts.Name, snapshot.plane.files.folder)
	}
	ctx, cancel := p.untilStop(ctx)
	defer cancel()
	client, err := newPlaneClient(p.admin)
	if err != nil {
		return err
	}
	defer client.close()

	p.running.kill()
	data := p.path(etcdFolder)
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := copyData(ctx, snapshot.folder, data); err != nil {
		return err
	}
	if p.running.etcd, err = p.run(etcdName, p.etcdArgs()); err != nil {
		return err
	}
	if p.running.apiServer, err = p.run(apiServerName, p.apiServerArgs()); err != nil {
		return err
	}
	if err := p.waitForAPIServer(ctx, client); err != nil {
		kill(&p.running.apiServer)
		kill(&p.running.etcd)
		return err
	}
	if p.opts.Nodes > 0 {
		// kwok has a new identity at every start, and manages a node only once the Lease of the old identity has expired.
		leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("delete the Leases of the nodes: %w", err)
		}
	}
	return p.startControllers()
}

// copyData copies the folder of an etcd that does not write. It omits temporary files and blocks that contain only
// zeros.
func copyData(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case strings.HasSuffix(name, ".tmp"):
			return nil
		default:
			return copySparse(path, target)
		}
	})
}

// copySparse copies a file without the blocks that contain only zeros. A log of etcd has 64 MB, most of which is only
// allocated in advance.
func copySparse(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(writeSparse(target, source), target.Close())
}

func writeSparse(target *os.File, source io.Reader) error {
	buffer, zeros, size := make([]byte, 64<<10), make([]byte, 64<<10), int64(0)
	for {
		n, err := io.ReadFull(source, buffer)
		if n > 0 && !bytes.Equal(buffer[:n], zeros[:n]) {
			if _, err := target.WriteAt(buffer[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return target.Truncate(size)
		case err != nil:
			return err
		}
	}
}
