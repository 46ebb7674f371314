package config

import (
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// registry has names without a trailing '/'.
type registry struct{ source, mirror string }

func registriesOf(all []v1alpha1.Registry) ([]registry, error) {
	out := make([]registry, len(all))
	for i, r := range all {
		out[i] = registry{strings.TrimRight(r.Source, "/"), strings.TrimRight(r.Mirror, "/")}
		for _, name := range []string{out[i].source, out[i].mirror} {
			if strings.Contains(name, "://") || strings.ContainsAny(name, " \t\r\n") {
				return nil, fmt.Errorf("%w: registry %q: must have the form of an image name, without a scheme or spaces",
					ErrInvalid, name)
			}
		}
		if out[i].mirror == "" {
			return nil, fmt.Errorf("%w: registry %q has no mirror", ErrInvalid, r.Source)
		}
	}
	return out, nil
}

// mirrored returns the image name with the mirror applied.
func mirrored(image string, registries []registry) string {
	if image == "" {
		return image // an admission webhook may set the image later
	}
	full := fullName(image)
	for _, r := range registries {
		out, matches := r.replace(image, full)
		if !matches {
			continue
		}
		for _, other := range registries {
			_, already := behind(image, other.mirror)
			below, _ := behind(r.source, other.mirror)
			if already && below == "" {
				return image
			}
		}
		return out
	}
	return image
}

func (r registry) replace(image, full string) (out string, matches bool) {
	if r.source == "" {
		_, path, _ := strings.Cut(full, "/")
		return r.mirror + "/" + path, true
	}
	for _, name := range []string{image, full} {
		if rest, matches := behind(name, r.source); matches {
			return r.mirror + rest, true
		}
	}
	return "", false
}

// behind returns the rest of an image name after a prefix that ends at a part boundary.
func behind(image, beginning string) (rest string, found bool) {
	rest, found = strings.CutPrefix(image, beginning)
	switch {
	case !found || rest == "":
	case rest[0] == '/', rest[0] == '@':
	case rest[0] == ':' && !strings.Contains(rest, "/"): // otherwise it is a port
	default:
		found = false
	}
	if !found {
		rest = ""
	}
	return rest, found
}

// fullName returns the image name with its registry and, on Docker Hub, its library, as container runtimes complete it.
func fullName(image string) string {
	host, path, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, path = "docker.io", image
	}
	if host == "index.docker.io" {
		host = "docker.io"
	}
	if host == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	return host + "/" + path
}
