//! Places in a tree: `contexts[name=staging].context.namespace`.

use super::{Scalar, Tree};

/// One step down.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member of a map.
    Key(String),
    /// The element of a list in which one of these keys has this value.
    Element { keys: Vec<String>, value: String },
    /// Every element of a list.
    Every,
}

/// A place in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreePath {
    steps: Vec<Step>,
    /// Whether keys match in any case.
    ignores_case: bool,
}

impl TreePath {
    /// Parses a path and fills its placeholders, in this order: a value may itself hold dots and brackets.
    pub(crate) fn parse(template: &str, fill: impl Fn(&str) -> String) -> Self {
        let mut steps = Vec::new();
        for part in template.split('.') {
            let (key, selector) = match part.split_once('[') {
                Some((key, rest)) => (key, Some(rest.trim_end_matches(']'))),
                None => (part, None),
            };
            if !key.is_empty() {
                steps.push(Step::Key(fill(key)));
            }
            match selector.map(|selector| selector.split_once('=')) {
                None => {}
                Some(None) => steps.push(Step::Every),
                Some(Some((keys, value))) => {
                    let keys = keys.split('|').map(str::to_owned).collect();
                    steps.push(Step::Element { keys, value: fill(value) });
                }
            }
        }
        TreePath { steps, ignores_case: false }
    }

    /// The same path; with `ignore-case` its keys match in any case.
    pub(crate) fn ignoring_case(self, ignores_case: bool) -> Self {
        TreePath { ignores_case, ..self }
    }

    /// The place that its last step starts from.
    fn above(&self, steps: &[Step]) -> Self {
        TreePath { steps: steps.to_vec(), ignores_case: self.ignores_case }
    }

    /// The places in a tree that it leads to.
    pub(crate) fn find_mut<'t>(&self, tree: &'t mut Tree) -> Vec<&'t mut Tree> {
        let mut found = vec![tree];
        for step in &self.steps {
            found = found.into_iter().flat_map(|tree| step.down(tree, self.ignores_case)).collect();
        }
        found
    }

    pub(crate) fn exists(&self, tree: &mut Tree) -> bool {
        !self.find_mut(tree).is_empty()
    }

    /// The place that counts: the first, or of keys that differ in case the last, as their readers have it.
    pub(crate) fn find<'t>(&self, tree: &'t mut Tree) -> Option<&'t Tree> {
        let mut found = self.find_mut(tree).into_iter();
        let found = if self.ignores_case { found.next_back() } else { found.next() };
        found.map(|tree| &*tree)
    }

    /// The text at that place.
    pub(crate) fn text(&self, tree: &mut Tree) -> Option<String> {
        self.find(tree).and_then(|tree| tree.text().map(str::to_owned))
    }

    /// Puts a scalar there. Maps on the way are made; elements of lists are not.
    pub(crate) fn set(&self, tree: &mut Tree, scalar: &Scalar) -> bool {
        let Some((Step::Key(last), above)) = self.steps.split_last() else { return false };
        let mut at = tree;
        for step in above {
            if let Step::Key(key) = step {
                make_member(at, key);
            }
            match step.down(at, false).into_iter().next() {
                Some(next) => at = next,
                None => return false,
            }
        }
        make_member(at, last);
        for place in Step::Key(last.clone()).down(at, false) {
            *place = Tree::Scalar(scalar.clone());
        }
        true
    }

    /// Removes the member of a map that it leads to.
    pub(crate) fn remove(&self, tree: &mut Tree) {
        let Some((Step::Key(last), above)) = self.steps.split_last() else { return };
        for place in self.above(above).find_mut(tree) {
            if let Tree::Map(members) = place {
                members.retain(|(key, _)| !is_key(key, last, self.ignores_case));
            }
        }
    }

    /// Gives the element that it leads to a flag that says yes, and its siblings one that says no.
    pub(crate) fn mark(&self, tree: &mut Tree, flag: &str) {
        let Some((last @ Step::Element { .. }, above)) = self.steps.split_last() else { return };
        for place in self.above(above).find_mut(tree) {
            let Tree::List(trees) = place else { continue };
            // Two elements may have the same name; only one can be selected.
            let chosen = trees.iter().position(|tree| last.selects(tree));
            for (at, tree) in trees.iter_mut().enumerate() {
                let word = if Some(at) == chosen { "true" } else { "false" };
                // Plain, so that it is a boolean and not text.
                self.above(&[Step::Key(flag.to_owned())]).set(tree, &Scalar::plain(word));
            }
        }
    }

    /// Adds text to the list it leads to, which is made if it is not there; not twice.
    pub(crate) fn append(&self, tree: &mut Tree, text: &str) {
        if !self.exists(tree) {
            self.set(tree, &Scalar::plain(""));
        }
        for place in self.find_mut(tree) {
            if !matches!(place, Tree::List(_)) {
                *place = Tree::List(Vec::new());
            }
            if let Tree::List(trees) = place
                && !trees.iter().any(|tree| tree.text() == Some(text))
            {
                trees.push(Tree::Scalar(Scalar::quoted(text)));
            }
        }
    }
}

impl Step {
    fn selects(&self, tree: &Tree) -> bool {
        match self {
            Step::Element { keys, value } => {
                keys.iter().any(|key| tree.member(key).and_then(Tree::text) == Some(value))
            }
            Step::Key(_) | Step::Every => true,
        }
    }

    fn down<'t>(&self, tree: &'t mut Tree, ignores_case: bool) -> Vec<&'t mut Tree> {
        match (self, tree) {
            (Step::Key(key), Tree::Map(members)) => {
                let members = members.iter_mut().filter(|(name, _)| is_key(name, key, ignores_case));
                members.map(|(_, tree)| tree).collect()
            }
            (Step::Element { .. } | Step::Every, Tree::List(trees)) => {
                trees.iter_mut().filter(|tree| self.selects(tree)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn is_key(name: &Scalar, key: &str, ignores_case: bool) -> bool {
    name.text == key || ignores_case && name.text.eq_ignore_ascii_case(key)
}

fn make_member(tree: &mut Tree, key: &str) {
    if tree.is_nothing() {
        *tree = Tree::Map(Vec::new());
    }
    if let Tree::Map(members) = tree
        && !members.iter().any(|(name, _)| name.text == key)
    {
        members.push((Scalar::quoted(key), Tree::Scalar(Scalar::plain(""))));
    }
    // What is there and says nothing may become a map.
    if let Tree::Map(members) = tree {
        for (_, member) in members.iter_mut().filter(|(name, member)| name.text == key && member.is_nothing())
        {
            *member = Tree::Map(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Notation;
    use super::*;

    fn yaml(text: &str) -> Tree {
        Notation::Yaml.parse(Path::new("f"), text).unwrap()
    }

    fn path(template: &str, value: &str) -> TreePath {
        TreePath::parse(template, |text| text.replace("{value}", value))
    }

    #[test]
    fn a_value_with_dots_and_brackets_is_one_name() {
        let mut tree = yaml("contexts:\n- name: a.b[c]=d\n  context: {cluster: x}\n");
        let element = path("contexts[name={value}]", "a.b[c]=d");
        assert!(element.exists(&mut tree));
        assert!(!path("contexts[name={value}]", "a").exists(&mut tree));
        path("contexts[name={value}].context.namespace", "a.b[c]=d").set(&mut tree, &Scalar::quoted("web"));
        assert_eq!(path("contexts[].context.namespace", "").text(&mut tree).as_deref(), Some("web"));
        let mut hosts = yaml("github.com:\n  users: {bob: {oauth_token: t}}\n");
        assert!(path("{value}.users.bob", "github.com").exists(&mut hosts));
    }

    #[test]
    fn keys_of_any_case_are_one_key_and_the_last_counts() {
        let mut tree = yaml("Users:\n- {NAME: a, Token: x, token: y}\n");
        assert!(!path("users[].token", "").exists(&mut tree));
        let token = path("users[].token", "").ignoring_case(true);
        assert_eq!(token.text(&mut tree).as_deref(), Some("y"));
        token.remove(&mut tree);
        assert_eq!(tree, yaml("Users:\n- {NAME: a}\n"));
    }

    #[test]
    fn maps_are_made_and_elements_are_not() {
        let mut tree = yaml("a: null\n");
        assert!(path("a.b.c", "").set(&mut tree, &Scalar::quoted("x")));
        assert_eq!(path("a.b.c", "").text(&mut tree).as_deref(), Some("x"));
        assert!(!path("list[name=q].x", "").set(&mut tree, &Scalar::quoted("x")));
    }

    #[test]
    fn marking_and_appending() {
        let mut tree = yaml("l:\n- {name: a, on: true}\n- {name: b, on: false}\n");
        path("l[id|name={value}]", "b").mark(&mut tree, "on");
        assert_eq!(tree, yaml("l:\n- {name: a, on: false}\n- {name: b, on: true}\n"));
        for _ in 0..2 {
            path("dirs", "").append(&mut tree, "/x");
        }
        assert!(Notation::Yaml.write(&tree).ends_with("- \"/x\"\n"));
    }
}
