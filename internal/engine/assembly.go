package engine

import (
	"context"

	"retort/internal/config"
)

// assembly holds the parts that the engines of all principals share. Each part is built by a constructor from the
// parts before it.
type assembly struct {
	closeStack
	*configuration
	agents     *agentAssembly
	data       *dataAssembly
	tools      *toolAssembly
	programs   *programAssembly
	people     *peopleAssembly
	execution  *executionAssembly
	jobs       *jobQueue
	background *backgroundAssembly
	access     *accessAssembly
}

// assemble builds the parts of an engine. On an error it closes those that it has built, the last one first. The
// error contains no secret from the configuration.
func assemble(ctx context.Context, c Config, loaded *config.Config, files *config.Watcher) (_ *assembly, err error) {
	stores := newStores(c, loaded)
	var opened closeStack
	defer func() {
		opened.closeOnError(&err)
		err = maskError(stores.secrets, err)
	}()
	totals := newTotalsCache()
	opened.push(totals.Close)
	settings, err := newConfiguration(stores)
	if err != nil {
		return nil, err
	}
	opened.push(settings.Close)
	agents, err := newAgentAssembly(settings)
	if err != nil {
		return nil, err
	}
	opened.push(agents.Close)
	data, err := newDataAssembly(ctx, settings, totals)
	if err != nil {
		return nil, err
	}
	opened.push(data.Close)
	tools, err := newToolAssembly(settings, data)
	if err != nil {
		return nil, err
	}
	opened.push(tools.Close)
	programs, err := newProgramAssembly(settings, tools)
	if err != nil {
		return nil, err
	}
	opened.push(programs.Close)
	queue := &openedQueue{}
	people, err := newPeopleAssembly(settings, data, tools, queue)
	if err != nil {
		return nil, err
	}
	opened.push(people.Close)
	execution := newExecutionAssembly(settings, agents, data, tools, programs, people)
	opened.push(execution.Close)
	jobs := newJobQueue(settings, data, execution, queue)
	opened.push(jobs.Close)
	background := newBackgroundAssembly(settings, data, tools, people, execution, files)
	opened.push(background.Close)
	access := newAccessAssembly(settings)
	opened.push(access.Close)
	if err := checkTemplates(ctx, agents.templates, programs.checker); err != nil {
		return nil, err
	}
	return &assembly{opened, settings, agents, data, tools, programs, people, execution, jobs, background, access}, nil
}
