// Command local-clusters starts Kubernetes control planes on this machine, without containers, for trying out muster:
//
//	go run ./examples/local-clusters hub east west    # until Ctrl-C
//	export KUBECONFIG=clusters/kubeconfig             # with the contexts hub, east and west
//	kubectl --context hub get namespaces
//
// The folder clusters also contains one kubeconfig for each cluster. Pods become ready on simulated nodes, although no
// containers run. The first start builds etcd and Kubernetes, which takes some minutes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/muster-sdk/muster/mustertest/localplane"
)

type flags struct {
	folder string
	nodes  int
	names  []string
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("local-clusters", flag.ContinueOnError)
	set.StringVar(&f.folder, "dir", "clusters", "folder for the kubeconfig files")
	set.IntVar(&f.nodes, "nodes", 1, "simulated nodes of each cluster")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	f.names = set.Args()
	if len(f.names) == 0 {
		return f, errors.New("name the clusters, such as: local-clusters hub east west")
	}
	if f.nodes < 0 {
		return f, fmt.Errorf("--nodes must not be negative, got %d", f.nodes)
	}
	for i, name := range f.names {
		if !clusterName.MatchString(name) || name == "kubeconfig" {
			return f, fmt.Errorf("%q is no name for a cluster: use lower-case letters, digits and '-'", name)
		}
		if slices.Contains(f.names[:i], name) {
			return f, fmt.Errorf("two clusters have the name %s", name)
		}
	}
	return f, nil
}

func main() {
	f, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "local-clusters:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { <-ctx.Done(); stop() }() // A second signal ends the program immediately.
	if err := run(ctx, f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "local-clusters:", err)
		os.Exit(1)
	}
}

// run starts the clusters, writes their kubeconfig files, and stops the clusters when ctx ends.
func run(ctx context.Context, f flags, out io.Writer) (err error) {
	planes := make([]*localplane.Plane, len(f.names))
	defer func() {
		var group errgroup.Group
		for _, plane := range planes {
			if plane != nil {
				group.Go(plane.Stop)
			}
		}
		err = errors.Join(err, group.Wait())
	}()
	fmt.Fprintf(out, "Starting %s.\n", strings.Join(f.names, ", "))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, name := range f.names {
		group.Go(func() (err error) {
			if planes[i], err = localplane.Start(groupCtx, localplane.Options{Name: name, Nodes: f.nodes}); err != nil {
				return fmt.Errorf("start cluster %s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil // The user has interrupted the program.
		}
		return err
	}
	path, remove, err := f.write(planes)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Fprintf(out, "export KUBECONFIG=%s\nCtrl-C stops the clusters and deletes their data.\n", path)
	<-ctx.Done()
	return nil
}

// write writes a kubeconfig for each cluster, and then one that contains all clusters as contexts. The first cluster is
// its current context. The returned function removes the files.
func (f flags) write(planes []*localplane.Plane) (path string, remove func(), err error) {
	folder, err := filepath.Abs(f.folder)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, fmt.Errorf("create the folder for kubeconfig files: %w", err)
	}
	var files []string
	remove = func() {
		for _, file := range files {
			_ = os.Remove(file)
		}
		_ = os.Remove(folder) // It stays if it contains other files.
	}
	all := clientcmdapi.NewConfig()
	all.CurrentContext = f.names[0]
	for i, name := range f.names {
		one, err := clientcmd.LoadFromFile(planes[i].Kubeconfig())
		if err != nil {
			remove()
			return "", nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
		}
		context := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[context.Cluster], one.AuthInfos[context.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		single := clientcmdapi.NewConfig()
		single.Clusters[name], single.AuthInfos[name] = all.Clusters[name], all.AuthInfos[name]
		single.Contexts[name], single.CurrentContext = all.Contexts[name], name
		files = append(files, filepath.Join(folder, name+".kubeconfig"))
		if err := clientcmd.WriteToFile(*single, files[i]); err != nil {
			remove()
			return "", nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	// Scripts wait for this file, so it must appear only when it is complete.
	path = filepath.Join(folder, "kubeconfig")
	files = append(files, path)
	partial := path + ".partial"
	if err := errors.Join(clientcmd.WriteToFile(*all, partial), os.Rename(partial, path)); err != nil {
		remove()
		return "", nil, fmt.Errorf("write the kubeconfig of all clusters: %w", err)
	}
	return path, remove, nil
}
