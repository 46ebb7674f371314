package addon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/lookup"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// contentOf is the input of a content: the configurations of a Placement and of a member.
type contentOf struct {
	placement        []v1alpha1.ConfigReference
	member           *v1alpha1.MemberAddon // nil: nothing
	installNamespace string
	hosting          string // the name of the hosting member
	last             []v1alpha1.ConfigStatus
}

// content is the configuration of an add-on: for a member, or for the members of a Placement without configurations of
// their own.
type content struct {
	configs          []v1alpha1.ConfigStatus
	objects          []*unstructured.Unstructured // the configurations in their order
	settings         config.Settings
	template         *v1alpha1.AddonTemplate
	installNamespace string
	revision         string
	problems         []health.Problem
	late             bool // a function of the agent did not return in time, and is called again
	busy             bool // a function could not be called, and the end of its call triggers a reconcile
}

// contents returns the content for each input, in their order. The user is enqueued when a configuration among the
// results changes, and not when one of an earlier call does.
func (c *shared) contents(ctx context.Context, user types.NamespacedName, addon *v1alpha1.Addon,
	all ...contentOf) ([]content, error) {
	references, made := make([][]config.Reference, len(all)), make([]content, len(all))
	var wanted []v1alpha1.ConfigReference
	version, unversioned := c.version(ctx, user, addon.Name)
	for i, of := range all {
		own := c.own(ctx, of.member, &made[i])
		if unversioned != nil {
			made[i].addFailure(v1alpha1.ReasonManifestsFailed, unversioned.Error(), unversioned)
		}
		var refused []config.Problem
		references[i], refused = config.Effective(&addon.Spec, of.placement, own)
		for _, p := range refused {
			made[i].problem(p.Reason, p.String())
		}
		for _, r := range references[i] {
			wanted = append(wanted, r.ConfigReference)
		}
	}
	objects, failed, err := c.configs.Find(ctx, user, wanted)
	if err != nil {
		return nil, err
	}
	unknown := make(map[v1alpha1.ConfigReference]*lookup.Problem, len(failed))
	for i := range failed {
		unknown[failed[i].ConfigReference] = &failed[i]
	}
	for i, of := range all {
		c.resolve(ctx, addon, &made[i], references[i], found{user, objects, unknown, of, version})
	}
	return made, nil
}

// found is the known state of configurations, and the object that needs them.
type found struct {
	user    types.NamespacedName
	objects map[v1alpha1.ConfigReference]*lookup.Config
	unknown map[v1alpha1.ConfigReference]*lookup.Problem
	of      contentOf
	version string
}

func (f *found) hashOf(r v1alpha1.ConfigReference) string {
	if object := f.objects[r]; object != nil {
		return object.Hash
	}
	return ""
}

// resolve fills a content from its configurations.
func (c *shared) resolve(ctx context.Context, addon *v1alpha1.Addon, made *content, references []config.Reference,
	f found) {
	var missing []config.Problem
	made.configs, missing = config.Resolve(references, f.of.last, f.hashOf)
	for _, p := range missing {
		if why := f.unknown[p.ConfigReference]; why != nil {
			made.problems = append(made.problems, health.Problem{Reason: v1alpha1.ReasonConfigNotFound, Message: why.Message,
				Retried: why.Retried})
			continue
		}
		made.problem(p.Reason, p.String())
	}
	var settings []v1alpha1.AddonConfigSpec
	for i := range references {
		object := f.objects[references[i].ConfigReference]
		if object == nil {
			continue
		}
		made.objects = append(made.objects, object.Unstructured)
		if !made.late && !made.busy { // one function that does not return is enough to wait
			if err := c.validate(ctx, f.user, addon.Name, object.Unstructured); err != nil &&
				!made.addFailure(v1alpha1.ReasonConfigInvalid, fmt.Sprintf("%s: %s", references[i], err), err) {
				continue
			}
		}
		if err := made.read(&references[i], object.Unstructured, &settings); err != nil {
			made.problem(v1alpha1.ReasonConfigInvalid, fmt.Sprintf("%s: %s", references[i], err))
		}
	}
	made.settings = config.Values(settings)
	made.installNamespace = firstOf(f.of.installNamespace, made.settings.InstallNamespace, addon.Spec.InstallNamespace,
		defaultInstallNamespace)
	made.revision = config.Revision(config.Content{
		Addon: addon.Name, Version: f.version, InstallNamespace: made.installNamespace, HostingMember: f.of.hosting,
		Configs: made.configs,
	})
}

// defaultInstallNamespace is the default of the API, for Addons that were stored before the field existed.
const defaultInstallNamespace = "muster-addons"

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func (c *content) problem(reason, message string) {
	c.problems = append(c.problems, health.Problem{Reason: reason, Message: message})
}

// read adds a configuration of group addon.muster.dev to the content.
func (c *content) read(of *config.Reference, object *unstructured.Unstructured,
	settings *[]v1alpha1.AddonConfigSpec) error {
	if of.Group != v1alpha1.GroupName {
		return nil
	}
	switch of.Resource {
	case "addonconfigs":
		typed := &v1alpha1.AddonConfig{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return err
		}
		*settings = append(*settings, typed.Spec)
		return typed.Spec.Validate().ToAggregate()
	case "addontemplates":
		typed := &v1alpha1.AddonTemplate{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return err
		}
		c.template = typed
		return typed.Spec.Validate().ToAggregate()
	}
	return nil
}
