package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"retort/internal/core"
)

const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// deviceCode holds the response to a request for a login with a code (RFC 8628).
type deviceCode struct {
	Device   string `json:"device_code"`
	User     string `json:"user_code"`
	Address  string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"`
	Lasts    int64  `json:"expires_in"`
	Interval *int64 `json:"interval"`
}

// startDevice asks the authorization server for a code.
func (l *LoginFlow) startDevice(ctx context.Context) (err error) {
	c, m := l.client, l.found.server
	if m.Device == "" {
		return oauthErrorf("the authorization server %s does not support login with a code", clipLegible(m.Issuer)).
			WithHint("%s also works without a browser on this machine", c.loginCommand("--paste"))
	}
	if l.who, err = c.chooseIdentity(ctx, m, "http://127.0.0.1/callback"); err != nil {
		return err
	}
	form := url.Values{"resource": {l.found.resource}}
	if len(l.scopes) > 0 {
		form.Set("scope", strings.Join(l.scopes, " "))
	}
	body, err := c.postForm(ctx, m.Device, l.who, form)
	if err != nil {
		return err
	}
	var d deviceCode
	if json.Unmarshal(body, &d) != nil || d.Device == "" || d.User == "" {
		return oauthErrorf("the authorization server's response contains no login code")
	}
	c.o.Secret("device code", d.Device)
	u, err := url.Parse(d.Address)
	if err != nil {
		return oauthErrorf("the authorization server does not name a login page")
	}
	if err := c.http.Transport.(*networkGuard).checkURL(ctx, u); err != nil {
		return err
	}
	if err := c.checkAddress(ctx, d.Address); err != nil {
		return err
	}
	l.device, l.URL, l.Code = &d, d.Address, d.User
	return nil
}

// slowDownStep, maxPollPause and maxPollFailures limit the requests for the token (RFC 8628). slowDownStep is added to
// the pause between requests when the server answers slow_down, and maxPollPause is the longest pause after failed
// requests. maxPollFailures bounds how many requests in a row may fail.
const (
	slowDownStep    = 5 * time.Second
	maxPollPause    = time.Minute
	maxPollFailures = 5
)

// pollDevice asks for the token until the user has entered the code.
func (l *LoginFlow) pollDevice(ctx context.Context) error {
	pause := 5 * time.Second
	if d := l.device.Interval; d != nil {
		pause = time.Duration(min(max(*d, 0), 60)) * time.Second
	}
	pause = max(pause, 50*time.Millisecond)
	late := time.After(time.Duration(min(max(l.device.Lasts, 1), 3600)) * time.Second)
	for broken := 0; ; {
		select {
		case <-ctx.Done():
			return l.timeoutError(ctx)
		case <-late:
			return l.codeExpiredError()
		case <-time.After(pause):
		}
		err := l.exchangeCode(ctx, url.Values{"grant_type": {grantDevice}, "device_code": {l.device.Device}})
		var no *oauthDenial
		said := errors.As(err, &no) && no.Code != ""
		switch {
		case err == nil:
			return nil
		case !said && (no == nil || no.http >= 500):
			if broken++; broken > maxPollFailures {
				return err
			}
			pause = min(2*pause, maxPollPause)
			continue
		case !said:
			return err
		case no.Code == "slow_down":
			pause += slowDownStep
		case no.Code == "expired_token":
			return l.codeExpiredError()
		case no.Code == "access_denied":
			return core.AsError(err).WithHint("the login was denied on the page; to try again, run: %s", l.client.loginCommand("--device"))
		case no.Code != "authorization_pending":
			return err
		}
		broken = 0
	}
}

func (l *LoginFlow) codeExpiredError() *core.Error {
	return oauthErrorf("the code expired before it was entered").WithHint("%s", l.client.loginCommand("--device"))
}
