package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/registration/discovery"
)

// Exit codes, which the help of the root command explains.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitPreflight
	exitTimeout
	exitTaken
	exitUnreachable
	exitDenied
)

// errNoHub is the error for a cluster without muster's CustomResourceDefinitions.
var errNoHub = errors.New("is not a hub: the CustomResourceDefinitions of muster are not installed")

// errManaged is the error for an object that the hub would create again.
var errManaged = errors.New("the hub manages it")

// usageError is an error of the command line, or of a file that it names.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// report prints an error in one line, and the remedy in a second line. It prints the findings of a preflight error as a
// table. It returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	if !a.started {
		err = &usageError{err}
	}
	if failed, is := errors.AsType[*admin.PreflightError](err); is {
		fmt.Fprintln(a.err, "Error: preflight checks failed, and nothing was changed:")
		rows := table{header: []string{"CHECK", "PROBLEM", "WHAT TO DO"}}
		for _, f := range failed.Findings {
			rows.add(f.Check, f.Problem, f.Fix)
		}
		_ = rows.write(a.err)
	} else {
		fmt.Fprintf(a.err, "Error: %s\n", strings.ReplaceAll(message(err), "\n", " "))
		if hint := a.hint(err); hint != "" {
			fmt.Fprintf(a.err, "%s\n", hint)
		}
	}
	return codeOf(err)
}

// flagOf maps the options of package admin to flags and arguments.
var flagOf = map[string]string{
	"Name": "NAME", "Spec.labels": "--label", "Labels": "--label", "TokenLifetime": "--token-lifetime",
	"Server": "--server", "CA": "--certificate-authority", "ProxyURL": "--proxy-url", "ProxyHeaders": "--proxy-header",
	"ClusterID":   "--cluster-id",
	"ClusterRole": "--cluster-role", "Namespace": "--namespace", "Hub": "--hub", "Options.Server": "--server",
	"Options.Token": "--token", "Options.CACertHashes": "--discovery-token-ca-cert-hash",
	"Options.RegistrationNamespace": "--registration-namespace", "Image": "--image",
	"Options.UnsafeSkipCAVerification": "--discovery-token-unsafe-skip-ca-verification",
}

// message returns the message of an error, in which flags replace the options of package admin.
func message(err error) string {
	text := err.Error()
	invalid, is := errors.AsType[*membership.InvalidError](err)
	if !is {
		return text
	}
	name, index, indexed := strings.Cut(invalid.Field, "[")
	flag, known := flagOf[name]
	if !known {
		return text
	}
	if indexed {
		flag += "[" + index
	}
	return strings.Replace(text, invalid.Field+":", flag+":", 1)
}

// codeOf returns the exit code of an error. If several codes apply, it returns the most specific one.
func codeOf(err error) int {
	_, preflight := errors.AsType[*admin.PreflightError](err)
	_, badUsage := errors.AsType[*usageError](err)
	_, invalid := errors.AsType[*membership.InvalidError](err)
	_, timeout := errors.AsType[*admin.TimeoutError](err)
	_, unreachable := errors.AsType[*admin.UnreachableError](err)
	_, network := errors.AsType[*url.Error](err)
	switch {
	case errors.Is(err, admin.ErrNameTaken), errors.Is(err, admin.ErrClusterTaken):
		return exitTaken
	case errors.Is(err, admin.ErrDenied), errors.Is(err, admin.ErrExpired), errors.Is(err, discovery.ErrUnknownToken),
		untrusted(err):
		return exitDenied
	case timeout:
		return exitTimeout
	case unreachable, network, errors.Is(err, discovery.ErrUnreachable):
		return exitUnreachable
	case preflight, meta.IsNoMatchError(err), errors.Is(err, errNoHub), errors.Is(err, discovery.ErrNotAHub):
		return exitPreflight
	case badUsage, invalid, errors.Is(err, discovery.ErrNoPins), apierrors.IsInvalid(err):
		return exitUsage
	default:
		return exitFailed
	}
}

// untrusted reports whether the server could not prove that it is the hub.
func untrusted(err error) bool {
	return errors.Is(err, discovery.ErrWrongPin) || errors.Is(err, discovery.ErrWrongSignature) || errors.Is(err,
		discovery.ErrUntrusted)
}

// hint returns the remedy for an error whose message contains none.
func (a *app) hint(err error) string {
	_, badUsage := errors.AsType[*usageError](err)
	switch codeOf(err) {
	case exitTimeout:
		return "Completed changes remain. Run the same command again to continue."
	case exitUnreachable:
		return "Check the address in the kubeconfig and the network connection to the cluster."
	case exitPreflight:
		if errors.Is(err, discovery.ErrNotAHub) {
			return fmt.Sprintf("Check the address. If kubeadm did not create the hub, publish the hub with %s init "+
				"--publish-cluster-info, or use --join-file.", a.program)
		}
		return fmt.Sprintf("Prepare the hub with %s init, or use the kubeconfig of another cluster.", a.program)
	case exitDenied:
		if untrusted(err) {
			return "No secret data was sent. Compare the address, the token and the CA hashes with those that were printed " +
				"on the hub. If they are correct, another server answers at the address."
		}
		if errors.Is(err, admin.ErrExpired) || errors.Is(err, discovery.ErrUnknownToken) {
			return fmt.Sprintf("Create a new join token on the hub: %s token create", a.program)
		}
		return fmt.Sprintf("An administrator of the hub can accept the cluster: %s accept NAME", a.program)
	case exitUsage:
		if errors.Is(err, discovery.ErrNoPins) {
			return "Add the flag --discovery-token-ca-cert-hash that was printed with the token."
		}
		if badUsage {
			return fmt.Sprintf("See %s --help for usage.", a.program)
		}
	case exitFailed:
		switch {
		case errors.Is(err, admin.ErrNotFound):
			return fmt.Sprintf("List the members: %s get members", a.program)
		case errors.Is(err, context.Canceled):
			return "Completed changes remain. Run the same command again to continue."
		}
	}
	return ""
}

// capitalized returns words with an upper-case first letter.
func capitalized(words string) string {
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}
