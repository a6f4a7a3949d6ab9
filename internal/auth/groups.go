package auth

import "slices"

// These bounds apply to the groups that a token names.
const (
	maxGroups    = 200
	maxGroupName = 256 // bytes of a group's name
)

// readGroups returns the groups in the configured claim, sorted and without duplicates. If no claim is configured, it
// returns nil. It refuses a token without the claim, because the entries for groups can only restrict: a user whose
// client obtains a token without groups would escape these restrictions. An empty list is accepted.
func (r *JWTVerifier) readGroups(named map[string]any) ([]string, error) {
	if r.o.Groups == "" {
		return nil, nil
	}
	value, ok := findClaim(named, r.o.Groups)
	if !ok {
		return nil, refusedError(ErrToken, "the token has no claim %s, which must list the groups of the user", r.o.Groups).
			WithHint("configure the authorization server to add this claim to all tokens for this audience (http.oauth.groups)")
	}
	list, ok := value.([]any)
	if !ok {
		return nil, r.refusedGroups("is not a list of strings")
	}
	if len(list) > maxGroups {
		return nil, r.refusedGroups("lists %d groups; at most %d are allowed", len(list), maxGroups)
	}
	groups := make([]string, len(list))
	for i, item := range list {
		name, ok := item.(string)
		if !ok || name == "" || len(name) > maxGroupName {
			return nil, r.refusedGroups("contains an item that is not a string of 1 to %d bytes", maxGroupName)
		}
		groups[i] = name
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

func (r *JWTVerifier) refusedGroups(format string, args ...any) error {
	return refusedError(ErrToken, "the token's claim %s "+format, append([]any{r.o.Groups}, args...)...).
		WithHint("configure the authorization server to list only the groups that the settings name (http.oauth.groups)")
}

// findClaim looks up a claim by its name. If the token has no claim with exactly this name, findClaim splits the name
// at dots and follows the parts into nested objects: realm_access.roles is the field roles of the claim realm_access.
// A part may contain dots itself.
func findClaim(claims map[string]any, name string) (any, bool) {
	if value, ok := claims[name]; ok {
		return value, true
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		inner, ok := claims[name[:i]].(map[string]any)
		if !ok {
			continue
		}
		if value, ok := findClaim(inner, name[i+1:]); ok {
			return value, true
		}
	}
	return nil, false
}
