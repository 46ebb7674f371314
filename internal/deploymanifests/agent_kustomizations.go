package main

import "strings"

// kustomizations returns the kustomization of each folder.
func kustomizations() map[string]string {
	return map[string]string{
		"base": kustomization("The account of the agent, and what it may do on its member.", "account.yaml",
			"membership.yaml"),
		"home": kustomization("What the agent may do where it runs.", "home.yaml"),
		"works": kustomization("What it takes to apply Works. What they may contain is said by ClusterRoles with the label "+
			worksLabel+": \"true\".\n"+
			"# Delete this when the member has left, and not before: with the definition of AppliedWork goes all that Works "+
			"have applied.", "definition.yaml", "memberpolicies.yaml", "works.yaml"),

		"overlays/membership": kustomization("An agent that is a member and nothing else.", "../../base", "../../home",
			"deployment.yaml") + images,
		"overlays/singleton": kustomization("One process for all: membership and Works.", "../../base", "../../home",
			"../../works", "deployment.yaml") + images,
		"overlays/hosted/member": kustomization("An agent that runs outside of its member, on the member: make a "+
			"kubeconfig of the account muster-agent there.",
			"../../../base", "../../../works"),
		"overlays/hosted/hosting": kustomization("An agent that runs outside of its member, on the cluster that it runs "+
			"in: one namespace for each member, to be set here, with\n"+
			"# the kubeconfig of the member in key \"value\" of the Secret muster-member-kubeconfig.", "account.yaml",
			"../../../home", "deployment.yaml") +
			"namespace: muster-system\n" + images,

		"components/apply-anything": "# Works may contain anything: the agent is cluster-admin of its member.\n" +
			"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources:\n- binding.yaml\n",
	}
}

const images = "images:\n- name: muster-agent\n  newName: muster-agent # the image of your agent program\n  newTag: " +
	"latest\n"

func kustomization(what string, resources ...string) string {
	return "# " + what + "\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- " +
		strings.Join(resources, "\n- ") + "\n"
}
