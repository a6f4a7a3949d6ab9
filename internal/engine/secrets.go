package engine

import (
	"context"
	"os"

	"retort/internal/base/seal"
	"retort/internal/config"
	"retort/internal/mcp/client"
	"retort/internal/privacy/secrets"
)

// modelKeySecrets returns a model's API key as a secret. A key under 12 characters counts as a secret only under the
// rules for environment variables, because it is usually a placeholder for a model server that needs no key.
func modelKeySecrets(key string) []secrets.NamedSecret {
	const least = 12
	if len(key) < least {
		return secrets.FromVariable("retort", "model.key", key)
	}
	return []secrets.NamedSecret{{Label: "retort model.key", Value: key}}
}

// registeringAuthorizer wraps an Authorizer and registers the credentials that it returns as secrets.
type registeringAuthorizer struct {
	client.Authorizer
	server  string
	secrets *secrets.Masker
}

func (r registeringAuthorizer) Authorization(ctx context.Context) (string, error) {
	value, err := r.Authorizer.Authorization(ctx)
	r.secrets.Add(secrets.FromHeader(r.server, "Authorization", value)...)
	return value, err
}

// registerConfig registers the secrets of a configuration and of its servers with the masker. Authorizers other than
// serverLogins, which registers its secrets itself, are wrapped so that their credentials are registered as well.
func (st *Stores) registerConfig(f *activeConfig) {
	for i, s := range f.servers {
		if _, wrapped := s.Auth.(registeringAuthorizer); !wrapped && s.Auth != nil && f.logins[s.Name] == nil {
			f.servers[i].Auth = registeringAuthorizer{s.Auth, s.Name, st.secrets}
		}
		for name, value := range s.Env {
			st.secrets.Add(secrets.FromVariable(s.Name, name, value)...)
		}
		for name, value := range s.Headers {
			st.secrets.Add(secrets.FromHeader(s.Name, name, value)...)
		}
		st.secrets.Add(secrets.FromArguments(s.Name, s.Args)...)
		st.secrets.Add(secrets.FromAddress(s.Name+" url", s.URL)...)
	}
	st.registerSettings(f.config.Settings)
}

// registerSettings registers the secrets in the settings with the masker, and also the key that seals the user's
// approvals.
func (st *Stores) registerSettings(s config.Settings) {
	st.secrets.Add(secrets.FromVariable("retort", "approval.webhook.secret", s.Approval.Webhook.Secret)...)
	st.secrets.Add(secrets.FromAddress("retort approval.webhook.url", s.Approval.Webhook.URL)...)
	st.secrets.Add(secrets.FromVariable("retort", "anomalies.webhook.secret", s.Anomalies.Webhook.Secret)...)
	st.secrets.Add(secrets.FromAddress("retort anomalies.webhook.url", s.Anomalies.Webhook.URL)...)
	st.secrets.Add(secrets.FromVariable("retort", "search.embeddings.apiKey", s.Search.Embeddings.APIKey)...)
	st.secrets.Add(secrets.FromAddress("retort search.embeddings.url", s.Search.Embeddings.URL)...)
	st.secrets.Add(modelKeySecrets(s.Model.Key)...)
	st.secrets.Add(secrets.FromAddress("retort model.url", s.Model.URL)...)
	st.secrets.Add(secrets.FromVariable("retort", "telemetry.prometheus.token", s.Telemetry.Prometheus.Token)...)
	st.secrets.Add(secrets.FromAddress("retort audit.store", s.Audit.Store)...)
	st.secrets.Add(secrets.FromArguments("retort audit.checkpoint", s.Audit.Checkpoint)...)
	for _, secret := range s.Network.Secrets {
		st.secrets.Add(append(secrets.FromHeader("retort network.secrets", secret.Header, secret.Value), secrets.NamedSecret{
			Label: "retort network.secrets", Value: secret.Value,
		})...)
	}
	if name := s.PII.Key.Variable; name != "" {
		st.secrets.Add(secrets.NamedSecret{Label: "retort " + name, Value: os.Getenv(name)})
	}
	if file := st.UserDir().ApprovalsKey(); file != "" {
		if key, err := seal.ReadKey(file); err == nil {
			st.secrets.Add(secrets.NamedSecret{Label: "retort approvals.key", Value: string(key)})
		}
	}
}
